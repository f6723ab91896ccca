#include "server/s3/acl_xml.h"

#include <string.h>

#include "server/s3/call.h"

#define GROUP_PREFIX "http://acs.amazonaws.com/groups/global/"
#define XSI " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\""

static const struct {
    const char *name;
    unsigned permissions;
} permissions[] = {
    {"FULL_CONTROL", SRV_S3_ACL_FULL},   {"READ", SRV_S3_ACL_READ},
    {"WRITE", SRV_S3_ACL_WRITE},         {"READ_ACP", SRV_S3_ACL_READ_ACP},
    {"WRITE_ACP", SRV_S3_ACL_WRITE_ACP},
};

enum { N_PERMISSIONS = sizeof permissions / sizeof permissions[0] };

static bool equals(struct srv_str text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.base, word, text.len) == 0;
}

/* ---- Writing ---- */

static void write_user(struct srv_xml *xml, struct srv_str id)
{
    srv_xml_element(xml, "ID", id);
    srv_xml_element(xml, "DisplayName", id);
}

static void write_grantee(struct srv_xml *xml, const struct srv_s3_grant *grant)
{
    if (grant->grantee == SRV_S3_GRANTEE_USER) {
        srv_xml_open(xml, "Grantee" XSI " xsi:type=\"CanonicalUser\"");
        write_user(xml, grant->id);
    } else {
        srv_xml_open(xml, "Grantee" XSI " xsi:type=\"Group\"");
        srv_xml_element_z(xml, "URI",
                          grant->grantee == SRV_S3_GRANTEE_EVERYONE ? GROUP_PREFIX "AllUsers"
                                                                    : GROUP_PREFIX
                              "AuthenticatedUsers");
    }
    srv_xml_close(xml, "Grantee");
}

static void write_grant(struct srv_xml *xml, const struct srv_s3_grant *grant,
                        const char *permission)
{
    srv_xml_open(xml, "Grant");
    write_grantee(xml, grant);
    srv_xml_element_z(xml, "Permission", permission);
    srv_xml_close(xml, "Grant");
}

void srv_s3_acl_write(struct srv_xml *xml, const struct srv_s3_acl *acl, struct srv_str owner)
{
    srv_xml_open(xml, "AccessControlPolicy" SRV_S3_XMLNS);
    srv_xml_open(xml, "Owner");
    write_user(xml, owner);
    srv_xml_close(xml, "Owner");
    srv_xml_open(xml, "AccessControlList");
    for (size_t i = 0; i < acl->n; i++) {
        const struct srv_s3_grant *grant = &acl->grants[i];
        if (grant->permissions == SRV_S3_ACL_FULL)
            write_grant(xml, grant, "FULL_CONTROL");
        for (size_t k = 1; grant->permissions != SRV_S3_ACL_FULL && k < N_PERMISSIONS; k++) {
            if (grant->permissions & permissions[k].permissions)
                write_grant(xml, grant, permissions[k].name);
        }
    }
    srv_xml_close(xml, "AccessControlList");
    srv_xml_close(xml, "AccessControlPolicy");
}

/* ---- Reading ---- */

static enum srv_s3_code add_grantee(struct srv_s3_acl *acl, const struct srv_s3_access *access,
                                    const struct srv_xml_node *grantee, unsigned allowed)
{
    struct srv_str uri = srv_xml_child_text(grantee, "URI");
    struct srv_str id = srv_xml_child_text(grantee, "ID");
    struct srv_str email = srv_xml_child_text(grantee, "EmailAddress");
    const struct srv_s3_user *user;
    bool ok;

    if (uri.base != NULL) {
        if (!equals(uri, GROUP_PREFIX "AllUsers") &&
            !equals(uri, GROUP_PREFIX "AuthenticatedUsers"))
            return SRV_S3_INVALID_ARGUMENT;
        ok = srv_s3_acl_add(acl,
                            equals(uri, GROUP_PREFIX "AllUsers") ? SRV_S3_GRANTEE_EVERYONE
                                                                 : SRV_S3_GRANTEE_SIGNED,
                            (struct srv_str){"", 0}, allowed);
    } else if (id.base != NULL) {
        if (access->n_users > 0 && srv_s3_access_named(access, id) == NULL)
            return SRV_S3_INVALID_ARGUMENT;
        ok = srv_s3_acl_add(acl, SRV_S3_GRANTEE_USER, id, allowed);
    } else if (email.base != NULL) {
        user = srv_s3_access_mailed(access, email);
        if (user == NULL)
            return SRV_S3_UNRESOLVABLE_GRANT;
        ok = srv_s3_acl_add(acl, SRV_S3_GRANTEE_USER, srv_s3_str(user->name), allowed);
    } else {
        return SRV_S3_MALFORMED_ACL;
    }
    return ok ? SRV_S3_NONE : SRV_S3_MALFORMED_ACL;
}

static enum srv_s3_code add_grant(struct srv_s3_acl *acl, const struct srv_s3_access *access,
                                  const struct srv_xml_node *grant)
{
    struct srv_str name = srv_xml_child_text(grant, "Permission");
    const struct srv_xml_node *grantee = srv_xml_child(grant, "Grantee");

    if (!srv_xml_is(grant, "Grant") || grantee == NULL || name.base == NULL)
        return SRV_S3_MALFORMED_ACL;
    for (size_t i = 0; i < N_PERMISSIONS; i++) {
        if (equals(name, permissions[i].name))
            return add_grantee(acl, access, grantee, permissions[i].permissions);
    }
    return SRV_S3_MALFORMED_ACL;
}

enum srv_s3_code srv_s3_acl_read(const struct srv_xml_doc *doc, const struct srv_s3_access *access,
                                 struct srv_str owner, struct srv_s3_acl *acl_out)
{
    const struct srv_xml_node *root = srv_xml_root(doc);
    const struct srv_xml_node *list = srv_xml_child(root, "AccessControlList");
    struct srv_str id = srv_xml_child_text(srv_xml_child(root, "Owner"), "ID");
    enum srv_s3_code code = SRV_S3_NONE;

    acl_out->n = 0;
    if (!srv_xml_is(root, "AccessControlPolicy") || list == NULL || id.base == NULL)
        return SRV_S3_MALFORMED_ACL;
    if (id.len != owner.len || memcmp(id.base, owner.base, id.len) != 0)
        return SRV_S3_ACCESS_DENIED;
    for (const struct srv_xml_node *at = list->child; code == SRV_S3_NONE && at != NULL;
         at = at->next)
        code = add_grant(acl_out, access, at);
    return code;
}
