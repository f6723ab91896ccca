// @aws-sdk: client-s3 with strings, buffers and streams, lib-storage in parts, the presigner. Arguments: address, directory of files, directory
// for what comes back, bucket. Prints a line for each check.
import { createReadStream, createWriteStream, readFileSync, readdirSync, statSync, unlinkSync } from "node:fs";
import { createHash } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { createRequire } from "node:module";
const need = createRequire(`${process.env.NODE_PACKAGES}/`);
const S3 = need("@aws-sdk/client-s3");
const { Upload } = need("@aws-sdk/lib-storage");
const { getSignedUrl } = need("@aws-sdk/s3-request-presigner");

const [url, files, down, bucket] = process.argv.slice(2);
const client = new S3.S3Client({ endpoint: url, forcePathStyle: true, region: "us-east-1", maxAttempts: 1 });
const check = (what, holds, detail = "") => console.log(`${what}: ${holds ? "ok" : `wrong ${String(detail).replace(/: |\n/g, " ")}`}`);

async function md5(stream) {
  const digest = createHash("md5");
  for await (const block of stream) digest.update(block);
  return digest.digest("hex");
}

async function same(name, key) {
  const got = await client.send(new S3.GetObjectCommand({ Bucket: bucket, Key: key }));
  await pipeline(got.Body, createWriteStream(`${down}/${name}`));
  const back = await md5(createReadStream(`${down}/${name}`));
  unlinkSync(`${down}/${name}`);
  return back === (await md5(createReadStream(`${files}/${name}`)));
}

await client.send(new S3.CreateBucketCommand({ Bucket: bucket }));
for (const name of readdirSync(files).sort()) {
  const size = statSync(`${files}/${name}`).size;
  if (size < 16 << 20) {
    const body = readFileSync(`${files}/${name}`);
    await client.send(new S3.PutObjectCommand({ Bucket: bucket, Key: `buffer/${name}`, Body: body, Metadata: { who: "js" } }));
    check(`${name} as a buffer`, await same(name, `buffer/${name}`));
  }
  if (size <= 100 << 20) {
    await client.send(new S3.PutObjectCommand({ Bucket: bucket, Key: `stream/${name}`, Body: createReadStream(`${files}/${name}`), ContentLength: size }));
    check(`${name} as a stream`, await same(name, `stream/${name}`));
  }
  await new Upload({ client, params: { Bucket: bucket, Key: `parts/${name}`, Body: createReadStream(`${files}/${name}`) } }).done();
  check(`${name} in parts`, await same(name, `parts/${name}`));
}

const text = { Bucket: bucket, Key: "größe & more/+ %" };
await client.send(new S3.PutObjectCommand({ ...text, Body: "<text>" }));
check("an awkward key", (await (await client.send(new S3.GetObjectCommand(text))).Body.transformToString()) === "<text>");
const put = await getSignedUrl(client, new S3.PutObjectCommand({ Bucket: bucket, Key: "linked" }), { expiresIn: 600 });
const bare = new URL(put);
check("the link's own CRC is of nothing", bare.searchParams.get("x-amz-checksum-crc32") === "AAAAAA==", put);
const refused = await fetch(put, { method: "PUT", body: "a body" });
check("so a body is refused", refused.status === 400 && (await refused.text()).includes("<Code>BadDigest<"), refused.status);
const plain = new S3.S3Client({ endpoint: url, forcePathStyle: true, region: "us-east-1", requestChecksumCalculation: "WHEN_REQUIRED" });
const link = await getSignedUrl(plain, new S3.PutObjectCommand({ Bucket: bucket, Key: "linked" }), { expiresIn: 600 });
check("without it the link puts", (await fetch(link, { method: "PUT", body: "a body" })).status === 200);
const get = await getSignedUrl(client, new S3.GetObjectCommand({ Bucket: bucket, Key: "linked" }), { expiresIn: 600 });
check("a link to get with", (await (await fetch(get)).text()) === "a body");

let names = [];
for await (const page of S3.paginateListObjectsV2({ client, pageSize: 4 }, { Bucket: bucket })) names.push(...(page.Contents ?? []).map((entry) => entry.Key));
check("pages of four", names.includes("linked") && names.includes(text.Key) && new Set(names).size === names.length, names);
const gone = await client.send(new S3.DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects: names.map((Key) => ({ Key })) } }));
check("all are removed", gone.Deleted.length === names.length, gone.Errors?.length);
await client.send(new S3.DeleteBucketCommand({ Bucket: bucket }));
check("a missing key has its name", await client.send(new S3.GetObjectCommand(text)).then(() => false, (error) => error.name === "NoSuchBucket"));
