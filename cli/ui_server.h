/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live page's HTTP server, on 127.0.0.1 only. It runs in threads of its own, one per connection.
 * The number of connections, the sizes of requests and the times for sending a request and reading a
 * response are limited.
 */
#ifndef PYPROFCTL_UI_SERVER_H
#define PYPROFCTL_UI_SERVER_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct ui_server;

#define UI_BODY_MAX 65536

/* socket: the daemon's; borrowed. port 0: any free one. */
int ui_server_new(const char *socket, uint16_t port, struct ui_server **ret, struct diag *diag);
/* Cancels requests that are being answered; the daemon may process them nevertheless. */
void ui_server_free(struct ui_server *s);
DEFINE_FREEP(struct ui_server, ui_server_free)

/* The page's URL with the token; borrowed */
const char *ui_server_url(const struct ui_server *s);

/* Close connections that are late. To be called every second. */
void ui_server_sweep(struct ui_server *s);

#endif
