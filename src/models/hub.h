/*
 * hub.h - the hub that models are fetched from, as the environment names it.
 *
 * The variables are those of the hub's own program: HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH,
 * HF_HOME, HF_HUB_CACHE.  libcurl reads those of proxies.  Certificates of a company's authority
 * come from CURL_CA_BUNDLE, REQUESTS_CA_BUNDLE, SSL_CERT_FILE and SSL_CERT_DIR.
 */
#ifndef MEMWALL_SRC_MODELS_HUB_H
#define MEMWALL_SRC_MODELS_HUB_H

#include "engine/memwall.h"

/* Fill in everything but stop_fd.  The texts stay for the life of the process.  Returns -1 with
 * *e if there is no folder for the cache, or certificates cannot be read. */
int hub_settings(struct mw_hub *out, struct err *e);

/* Fill in the certificates alone: ca_files and ca_folder. */
int hub_authorities(struct mw_hub *out, struct err *e);

#endif
