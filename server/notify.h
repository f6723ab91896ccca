/* Telling the service manager how the process fares: systemd's protocol, which is one datagram to
 * the socket that $NOTIFY_SOCKET names.
 *
 * Threads: the main thread. Blocks: never for long. Allocates: nothing.
 */
#pragma once

/* Sends one state, printf style, such as "READY=1". Does nothing when nobody asked for it. */
__attribute__((format(printf, 1, 2))) void srv_notify(const char *format, ...);

/* "RELOADING=1" with the time that it has to come with; "READY=1" ends it. */
void srv_notify_reloading(void);
