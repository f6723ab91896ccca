"""boto3: files both ways in one piece and in parts, ranges, conditions, copies, tags, links, lists, removal. Arguments: address, directory of
files, directory for what comes back, bucket. Prints a line for each check."""
import hashlib
import pathlib
import sys
import urllib.request
import ssl

import boto3
import botocore.client
import botocore.exceptions
from boto3.s3.transfer import TransferConfig

url, files, down, bucket = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
s3 = boto3.client("s3", endpoint_url=url, verify=False, config=botocore.client.Config(retries={"total_max_attempts": 1},
                                                                                      signature_version="s3v4"))


def check(what, holds, detail=""):
    print(f"{what}: {'ok' if holds else 'wrong ' + str(detail).replace(chr(10), ' ').replace(': ', ' ')}", flush=True)


def code_of(function, **arguments):
    """The code of the error that a call ends with."""
    try:
        function(Bucket=bucket, **arguments)
        return "none"
    except botocore.exceptions.ClientError as error:
        return error.response["Error"]["Code"]


def md5(path):
    digest = hashlib.md5()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


s3.create_bucket(Bucket=bucket)
for path in sorted(files.iterdir()):
    name, size = path.name, path.stat().st_size
    if size <= 100 << 20:
        with open(path, "rb") as body:
            put = s3.put_object(Bucket=bucket, Key=name, Body=body, Metadata={"Who": "boto3"}, ContentType="text/x-test")
        check(f"{name} has its MD5 for an ETag", put["ETag"] == f'"{md5(path)}"', put["ETag"])
        got = s3.get_object(Bucket=bucket, Key=name)
        with open(down / name, "wb") as file:
            for block in got["Body"].iter_chunks(1 << 20):
                file.write(block)
        check(f"{name} comes back with what was said of it", (got["ContentLength"], got["ContentType"], got["Metadata"]) ==
              (size, "text/x-test", {"who": "boto3"}), got)
        check(f"{name} comes back in one piece", md5(down / name) == md5(path))
    s3.upload_file(str(path), bucket, f"{name}/parts", Config=TransferConfig(multipart_threshold=8 << 20, multipart_chunksize=8 << 20))
    s3.download_file(bucket, f"{name}/parts", str(down / name), Config=TransferConfig(multipart_threshold=1 << 20, multipart_chunksize=1 << 20))
    check(f"{name} comes back in parts", md5(down / name) == md5(path))
    (down / name).unlink()

largest = max((path for path in files.iterdir() if path.stat().st_size < 16 << 20), key=lambda path: path.stat().st_size)
data = largest.read_bytes()
part = s3.get_object(Bucket=bucket, Key=largest.name, Range="bytes=1000-99999")
check("a range", part["Body"].read() == data[1000:100000] and part["ContentRange"] == f"bytes 1000-99999/{len(data)}")
second = s3.get_object(Bucket=bucket, Key=f"{largest.name}/parts", PartNumber=2)
check("a part by number", second["Body"].read() == data[8 << 20:] and second["PartsCount"] == 2)
check("no range of nothing", code_of(s3.get_object, Key="size-0", Range="bytes=0-") == "InvalidRange")
check("a key that is not there", code_of(s3.get_object, Key="none") == "NoSuchKey")
check("HEAD of one that is not there", code_of(s3.head_object, Key="none") == "404")
etag = s3.head_object(Bucket=bucket, Key="size-1")["ETag"]
check("If-Match of another", code_of(s3.get_object, Key="size-1", IfMatch='"other"') == "PreconditionFailed")
check("If-None-Match of this one", code_of(s3.get_object, Key="size-1", IfNoneMatch=etag) == "304")
s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": largest.name})
check("a copy", s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == data)
upload = s3.create_multipart_upload(Bucket=bucket, Key="joined")["UploadId"]
parts = [{"PartNumber": n, "ETag": s3.upload_part_copy(Bucket=bucket, Key="joined", UploadId=upload, PartNumber=n, CopySourceRange=area,
                                                       CopySource={"Bucket": bucket, "Key": largest.name})["CopyPartResult"]["ETag"]}
         for n, area in ((1, "bytes=0-5242879"), (2, f"bytes=5242880-{len(data) - 1}"))]
s3.complete_multipart_upload(Bucket=bucket, Key="joined", UploadId=upload, MultipartUpload={"Parts": parts})
check("parts that are copied", s3.get_object(Bucket=bucket, Key="joined")["Body"].read() == data)
s3.put_object_tagging(Bucket=bucket, Key="size-1", Tagging={"TagSet": [{"Key": "a", "Value": "b c"}]})
check("tags", s3.get_object_tagging(Bucket=bucket, Key="size-1")["TagSet"] == [{"Key": "a", "Value": "b c"}])

context = ssl._create_unverified_context() if url.startswith("https") else None
link = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "linked"}, ExpiresIn=600)
with urllib.request.urlopen(urllib.request.Request(link, data=data, method="PUT"), context=context) as answer:
    check("a link to put with", answer.status == 200)
link = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "linked"}, ExpiresIn=600)
with urllib.request.urlopen(link, context=context) as answer:
    check("a link to get with", answer.read() == data)

keys = [entry["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 3})
        for entry in page.get("Contents", [])]
check("pages of three", keys == sorted(keys) and {"copy", "joined", "linked"} < set(keys), keys)
first = s3.list_objects(Bucket=bucket, Delimiter="/")
check("prefixes", [entry["Prefix"] for entry in first["CommonPrefixes"]] ==
      sorted(f"{path.name}/" for path in files.iterdir()), first.get("CommonPrefixes"))
gone = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
check("all are removed", len(gone["Deleted"]) == len(keys) and "Errors" not in gone, gone.get("Errors"))
check("nothing is left", "Contents" not in s3.list_objects_v2(Bucket=bucket))
s3.delete_bucket(Bucket=bucket)
