// minio: files both ways, ranges, lists, links, removal. Arguments: address, directory of files, directory for what comes back, bucket. Prints
// a line for each check.
import { createReadStream, readdirSync, unlinkSync } from "node:fs";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
const { Client } = createRequire(`${process.env.NODE_PACKAGES}/`)("minio");

const [url, files, down, bucket] = process.argv.slice(2);
const at = new URL(url);
const client = new Client({
  endPoint: at.hostname, port: Number(at.port), useSSL: at.protocol === "https:",
  accessKey: process.env.AWS_ACCESS_KEY_ID, secretKey: process.env.AWS_SECRET_ACCESS_KEY,
});
const check = (what, holds, detail = "") => console.log(`${what}: ${holds ? "ok" : `wrong ${String(detail).replace(/: |\n/g, " ")}`}`);

async function md5(stream) {
  const digest = createHash("md5");
  for await (const block of stream) digest.update(block);
  return digest.digest("hex");
}

async function list(prefix, recursive) {
  const found = [];
  for await (const entry of client.listObjectsV2(bucket, prefix, recursive)) found.push(entry.name ?? entry.prefix);
  return found;
}

check("no bucket yet", !(await client.bucketExists(bucket)));
await client.makeBucket(bucket);
check("now there is", await client.bucketExists(bucket));
const names = readdirSync(files).sort();
for (const name of names) {
  await client.fPutObject(bucket, `a dir/${name}`, `${files}/${name}`, { "X-Amz-Meta-Who": "minio" });
  await client.fGetObject(bucket, `a dir/${name}`, `${down}/${name}`);
  check(`${name} comes back`, (await md5(createReadStream(`${down}/${name}`))) === (await md5(createReadStream(`${files}/${name}`))));
  unlinkSync(`${down}/${name}`);
}
const stat = await client.statObject(bucket, "a dir/size-1");
check("what is known of it", stat.size === 1 && stat.metaData.who === "minio", JSON.stringify(stat));
await client.putObject(bucket, "text", "0123456789");
let part = "";
for await (const block of await client.getPartialObject(bucket, "text", 3, 4)) part += block;
check("a range", part === "3456", part);
check("a list", (await list("", true)).length === names.length + 1);
check("prefixes", JSON.stringify((await list("", false)).sort()) === JSON.stringify(["a dir/", "text"]));
const link = await client.presignedPutObject(bucket, "linked", 600);
check("a link to put with", (await fetch(link, { method: "PUT", body: "a body" })).status === 200);
check("a link to get with", (await (await fetch(await client.presignedGetObject(bucket, "linked", 600))).text()) === "a body");
await client.removeObjects(bucket, await list("", true));
check("nothing is left", (await list("", true)).length === 0);
await client.removeBucket(bucket);
