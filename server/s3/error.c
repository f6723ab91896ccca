#include "server/s3/error.h"

#include "server/xml.h"

static const struct {
    const char *name;
    const char *message;
    int status;
} codes[SRV_S3_CODE_COUNT] = {
    [SRV_S3_NONE] = {"", "", 200},
#define X(name, code, status, message) [SRV_S3_##name] = {code, message, status},
#include "server/s3/error.def"
#undef X
};

const char *srv_s3_code_name(enum srv_s3_code code)
{
    return codes[code].name;
}

int srv_s3_code_status(enum srv_s3_code code)
{
    return codes[code].status;
}

const char *srv_s3_code_message(enum srv_s3_code code)
{
    return codes[code].message;
}

/* Errors whose kind alone says too little. */
static enum srv_s3_code code_of_one(gyre_err err)
{
    switch (err) {
    case GYRE_NOT_FOUND:
    case GYRE_EXPIRED: return SRV_S3_NO_SUCH_KEY;
    case GYRE_EXISTS:
    case GYRE_CHANGED: return SRV_S3_PRECONDITION_FAILED;
    case GYRE_RANGE: return SRV_S3_INVALID_RANGE;
    case GYRE_CLOSED: return SRV_S3_SERVICE_UNAVAILABLE;
    case GYRE_QUOTA: return SRV_S3_INSUFFICIENT_STORAGE;
    case GYRE_TOO_LARGE: return SRV_S3_ENTITY_TOO_LARGE;
    case GYRE_META_TOO_LARGE: return SRV_S3_METADATA_TOO_LARGE;
    case GYRE_LENGTH: return SRV_S3_INCOMPLETE_BODY;
    case GYRE_IO: return SRV_S3_INTERNAL_ERROR;
    default: return SRV_S3_NONE;
    }
}

enum srv_s3_code srv_s3_code_of(gyre_err err)
{
    if (err == GYRE_OK)
        return SRV_S3_NONE;
    enum srv_s3_code code = code_of_one(err);
    if (code != SRV_S3_NONE)
        return code;
    switch (gyre_err_kind(err)) {
    case GYRE_KIND_RETRY: return SRV_S3_SLOW_DOWN;
    case GYRE_KIND_RESOURCE: return SRV_S3_SERVICE_UNAVAILABLE;
    default: /* a call of ours was wrong, or the disk is: neither is the client's doing */
        return SRV_S3_INTERNAL_ERROR;
    }
}

static void element_if(struct srv_xml *xml, const char *name, struct srv_str text)
{
    if (text.base != NULL)
        srv_xml_element(xml, name, text);
}

void srv_s3_error_write(struct srv_xml *xml, const struct srv_s3_error *error)
{
    const char *message = error->message != NULL ? error->message : codes[error->code].message;
    srv_xml_open(xml, "Error");
    srv_xml_element_z(xml, "Code", codes[error->code].name);
    srv_xml_element_z(xml, "Message", message);
    if (error->key.base != NULL)
        srv_xml_element(xml, "Key", error->key);
    else
        element_if(xml, "BucketName", error->bucket);
    for (size_t i = 0; i < error->n_details; i++)
        srv_xml_element(xml, error->details[i].name, error->details[i].value);
    element_if(xml, "Resource", error->resource);
    element_if(xml, "RequestId", error->request_id);
    element_if(xml, "HostId", error->host_id);
    srv_xml_close(xml, "Error");
}
