/* Sets of tags as XML: <Tagging><TagSet><Tag><Key/><Value/></Tag></TagSet></Tagging>.
 *
 * Threads: any. Blocks: never. Allocates: through the XML reader and writer.
 */
#pragma once

#include "server/s3/tagset.h"
#include "server/xml.h"
#include "server/xml_read.h"

/* Reads a document into a set that was begun. NONE; MALFORMED_XML; as srv_s3_tagset_add. */
enum srv_s3_code srv_s3_tagset_read(const char *bytes, size_t len, struct srv_s3_tagset *set);

/* Adds one <Tag> to a set: they occur in lifecycle filters, too. */
enum srv_s3_code srv_s3_tagset_add_node(struct srv_s3_tagset *set, const struct srv_xml_node *tag);

/* Writes the document. */
void srv_s3_tags_write(struct srv_xml *xml, struct srv_str encoded);
