#include "server/tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "server/front.h"

enum { SELF_SIGNED_DAYS = 30 };

static const unsigned char PROTOCOLS[] = "\x02h2\x08http/1.1";

/* Writes `what` and OpenSSL's own words for it. */
static void explain(char *error, size_t size, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(error, size, "%s: %s", what, reason != NULL ? reason : "OpenSSL gives no reason");
    ERR_clear_error();
}

/* Why a file cannot be used. OpenSSL's first error is the cause; those behind it say which of its
 * functions noticed, such as "PEM lib". */
static const char *reason_of_file(bool was_phrase_wanted)
{
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_reason_error_string(code);
    int library = ERR_GET_LIB(code), number = ERR_GET_REASON(code);

    ERR_clear_error();
    if (was_phrase_wanted)
        return "it is protected by a pass phrase: give one that is not";
    if ((library == ERR_LIB_PEM && number == PEM_R_NO_START_LINE) ||
        (library == ERR_LIB_OSSL_DECODER && number == ERR_R_UNSUPPORTED))
        return "there is none in it in PEM form (-----BEGIN ...)";
    if (library == ERR_LIB_X509 && number == X509_R_KEY_VALUES_MISMATCH)
        return "it does not belong to the certificate";
    return reason != NULL ? reason : "OpenSSL gives no reason";
}

/* A server has nobody to ask, least of all when it reads its files again. */
static int refuse_pass_phrase(char *phrase, int size, int is_for_writing, void *was_wanted)
{
    (void)phrase;
    (void)size;
    (void)is_for_writing;
    *(bool *)was_wanted = true;
    return -1;
}

/* The server's preference among the protocols that the client offers; none in common is a client
 * that speaks neither. */
static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    unsigned char *selected = NULL;
    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&selected, out_len, PROTOCOLS, sizeof PROTOCOLS - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = selected;
    return SSL_TLSEXT_ERR_OK;
}

static bool add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = extension != NULL && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

/* A certificate for this machine's own names, signed with `key`; NULL on error. */
static X509 *make_certificate(EVP_PKEY *key)
{
    X509 *cert = X509_new();
    if (cert == NULL)
        return NULL;
    X509_NAME *name = X509_get_subject_name(cert);
    bool ok = X509_set_version(cert, X509_VERSION_3) == 1 &&
              ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), 1) == 1 &&
              X509_gmtime_adj(X509_getm_notBefore(cert), -3600) != NULL &&
              X509_gmtime_adj(X509_getm_notAfter(cert), SELF_SIGNED_DAYS * 86400L) != NULL &&
              X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                         (const unsigned char *)"localhost", -1, -1, 0) == 1 &&
              X509_set_issuer_name(cert, name) == 1 && X509_set_pubkey(cert, key) == 1 &&
              add_extension(cert, NID_basic_constraints, "critical,CA:TRUE") &&
              add_extension(cert, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1") &&
              X509_sign(cert, key, EVP_sha256()) != 0;
    if (!ok) {
        X509_free(cert);
        return NULL;
    }
    return cert;
}

static bool use_self_signed(SSL_CTX *tls, char *error, size_t size)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key == NULL ? NULL : make_certificate(key);
    bool ok = cert != NULL && SSL_CTX_use_certificate(tls, cert) == 1 &&
              SSL_CTX_use_PrivateKey(tls, key) == 1;
    if (!ok)
        explain(error, size, "cannot make a self-signed certificate");
    X509_free(cert);
    EVP_PKEY_free(key);
    return ok;
}

static bool use_files(SSL_CTX *tls, const struct srv_front_config *config, char *error, size_t size)
{
    const char *cert = config->tls_cert_path;
    const char *key = config->tls_key_path != NULL ? config->tls_key_path : cert;
    bool was_phrase_wanted = false, ok = false;

    ERR_clear_error();
    SSL_CTX_set_default_passwd_cb(tls, refuse_pass_phrase);
    SSL_CTX_set_default_passwd_cb_userdata(tls, &was_phrase_wanted);
    if (SSL_CTX_use_certificate_chain_file(tls, cert) != 1)
        snprintf(error, size, "--tls-cert: cannot use the certificate in %s: %s", cert,
                 reason_of_file(was_phrase_wanted));
    else if (SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) != 1 ||
             SSL_CTX_check_private_key(tls) != 1)
        snprintf(error, size, "--tls-key: cannot use the private key in %s: %s%s", key,
                 reason_of_file(was_phrase_wanted),
                 key != cert ? "" : "; --tls-key FILE names the file of the key");
    else
        ok = true;
    SSL_CTX_set_default_passwd_cb_userdata(tls, NULL);
    return ok;
}

static _Atomic uint64_t n_renegotiations;

/* OpenSSL refuses another handshake by itself, with an alert that says so. */
static void on_info(const SSL *ssl, int where, int value)
{
    (void)ssl;
    if ((where & SSL_CB_WRITE_ALERT) == SSL_CB_WRITE_ALERT &&
        (value & 0xff) == SSL_AD_NO_RENEGOTIATION)
        atomic_fetch_add_explicit(&n_renegotiations, 1, memory_order_relaxed);
}

uint64_t srv_tls_renegotiations(void)
{
    return atomic_load_explicit(&n_renegotiations, memory_order_relaxed);
}

static bool configure(SSL_CTX *tls, const char *name)
{
    unsigned char id[SSL_MAX_SID_CTX_LENGTH];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_len = 0;
    if (EVP_Digest(name, strlen(name), digest, &digest_len, EVP_sha256(), NULL) != 1 ||
        digest_len < sizeof id)
        return false;
    memcpy(id, digest, sizeof id);
    SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    /* Tickets let any loop resume without a table that all of them would have to lock. */
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(tls, 1);
    SSL_CTX_set_info_callback(tls, on_info);
    SSL_CTX_set_alpn_select_cb(tls, select_protocol, NULL);
    return SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_session_id_context(tls, id, sizeof id) == 1;
}

SSL_CTX *srv_tls_create(const struct srv_front_config *config, const char *name, char *error,
                        size_t size)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    bool ok = tls != NULL && configure(tls, name);
    if (!ok)
        explain(error, size, "cannot set up TLS");
    else if (config->tls_cert_path != NULL)
        ok = use_files(tls, config, error, size);
    else if (config->tls_self_signed)
        ok = use_self_signed(tls, error, size);
    else {
        snprintf(
            error, size,
            "listener %s speaks TLS but has no certificate: give one, or ask for a self-signed one",
            name);
        ok = false;
    }
    if (!ok) {
        SSL_CTX_free(tls);
        return NULL;
    }
    return tls;
}

SSL_CTX *srv_tls_ref(SSL_CTX *tls)
{
    SSL_CTX_up_ref(tls);
    return tls;
}

void srv_tls_destroy(SSL_CTX *tls)
{
    SSL_CTX_free(tls);
}
