"""awscrt: parts of 8 MiB up, ranges of 8 MiB down. Arguments: address, directory of files, directory for what comes back, bucket. The client
does not hash bodies; with a checksum it sends one as a trailer. Prints a line for each check."""
import filecmp
import pathlib
import sys
import urllib.parse

from awscrt.auth import AwsCredentialsProvider
from awscrt.http import HttpHeaders, HttpRequest
from awscrt.io import ClientTlsContext, TlsContextOptions
from awscrt.s3 import (S3ChecksumAlgorithm, S3ChecksumConfig, S3ChecksumLocation, S3Client, S3RequestTlsMode, S3RequestType,
                       create_default_s3_signing_config)

url, files, down, bucket = urllib.parse.urlsplit(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
is_tls = url.scheme == "https"
options = TlsContextOptions()
options.verify_peer = False
credentials = AwsCredentialsProvider.new_environment()
client = S3Client(region="us-east-1", part_size=8 << 20, throughput_target_gbps=1,
                  signing_config=create_default_s3_signing_config(region="us-east-1", credential_provider=credentials),
                  tls_mode=S3RequestTlsMode.ENABLED if is_tls else S3RequestTlsMode.DISABLED,
                  tls_connection_options=ClientTlsContext(options).new_connection_options() if is_tls else None)
ROUND = {"no checksum": None,
         "a trailer": S3ChecksumConfig(algorithm=S3ChecksumAlgorithm.CRC32C, location=S3ChecksumLocation.TRAILER, validate_response=True),
         "a field": S3ChecksumConfig(algorithm=S3ChecksumAlgorithm.SHA256, location=S3ChecksumLocation.HEADER, validate_response=True)}


def check(what, holds, detail=""):
    print(f"{what}: {'ok' if holds else 'wrong ' + str(detail).replace(chr(10), ' ').replace(': ', ' ')}", flush=True)


def ask(kind, method, key, what, operation=None, **arguments):
    """One request to its end; its fields, or None after a failed check."""
    headers = HttpHeaders([("host", url.netloc)])
    if method == "PUT" and "send_filepath" in arguments:
        headers.add("content-length", str(pathlib.Path(arguments["send_filepath"]).stat().st_size))
        headers.add("content-type", "application/octet-stream")
    elif method == "PUT":
        headers.add("content-length", "0")
    found = []
    request = client.make_request(type=kind, request=HttpRequest(method, f"/{bucket}{key}", headers), operation_name=operation,
                                  on_headers=lambda status_code, headers, **rest: found.append((status_code, dict(headers))), **arguments)
    try:
        request.finished_future.result(1500)
    except Exception as error:
        check(what, False, f"{type(error).__name__} {error} {getattr(error, 'body', None)}")
        return None
    return found[-1] if found else None


ask(S3RequestType.DEFAULT, "PUT", "", "a bucket", operation="CreateBucket")
for name, config in ROUND.items():
    for path in sorted(files.iterdir()):
        key, back = f"/{name.replace(' ', '-')}/{path.name}", down / path.name
        ask(S3RequestType.PUT_OBJECT, "PUT", key, f"{path.name} goes up", send_filepath=str(path), checksum_config=config)
        ask(S3RequestType.GET_OBJECT, "GET", key, f"{path.name} comes down", recv_filepath=str(back), checksum_config=config)
        check(f"{path.name} with {name} comes back", back.exists() and filecmp.cmp(path, back, shallow=False))
        back.unlink(missing_ok=True)
