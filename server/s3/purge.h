/* PURGE: of one object, of a folder, of a whole bucket, and of all objects with a tag.
 *
 *   PURGE /bucket/key                       200, or 404 if there was no such object
 *   PURGE /bucket?prefix=folder/            200: all that was stored below it before is gone
 *   PURGE /bucket?prefix=&confirm=bucket    the same for all of the bucket
 *   PURGE /bucket?tag=NAME                  the same for what was stored with Surrogate-Key: NAME
 * or Cache-Tag: NAME; these fields name tags here, too
 *
 * Groups are banned in the store, which takes the same time for any number of objects and survives
 * a power loss. They need the right to write.
 *
 * Threads: the exchange's loop.
 * Blocks:  never.
 */
#pragma once

struct srv_s3_call;

void srv_s3_purge_object(const struct srv_s3_call *call);
void srv_s3_purge_bucket(const struct srv_s3_call *call);
