/* Access control lists as XML: <AccessControlPolicy>.
 *
 * Threads: any, with the users held still for read. Blocks: never. Allocates: through the XML
 * reader and writer.
 */
#pragma once

#include "server/s3/acl.h"
#include "server/xml.h"
#include "server/xml_read.h"

/* Writes the document. */
void srv_s3_acl_write(struct srv_xml *xml, const struct srv_s3_acl *acl, struct srv_str owner);

/* Reads one for something of `owner`; ids point into the document and the users. NONE;
 * MALFORMED_ACL; INVALID_ARGUMENT: no such user; UNRESOLVABLE_GRANT; ACCESS_DENIED: it names
 * another owner. */
enum srv_s3_code srv_s3_acl_read(const struct srv_xml_doc *doc, const struct srv_s3_access *access,
                                 struct srv_str owner, struct srv_s3_acl *acl_out);
