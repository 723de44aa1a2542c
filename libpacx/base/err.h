/* err.h: the error list of libpacx and the daemons, and the one way to log.
 *
 * Owns nothing. Everybody includes it; it includes libc only. Functions return
 * int: >= 0 success, a negative PX_E... code otherwise. Whoever first decides
 * which error it is logs it once with px_log, naming peer and reason; callers
 * hand the code up without logging again.
 */
#ifndef PX_ERR_H
#define PX_ERR_H

#define PX_ERRORS(X)                                                                                         \
	X(PX_EINVAL, 1, "invalid argument")                                                                  \
	X(PX_ENOMEM, 2, "out of memory")                                                                     \
	X(PX_EAGAIN, 3, "not complete yet")                                                                  \
	X(PX_ESHORT, 4, "input ends too early")                                                              \
	X(PX_EPROTO, 5, "malformed frame")                                                                   \
	X(PX_EVERSION, 6, "protocol version differs")                                                        \
	X(PX_EJOB, 7, "another job")                                                                         \
	X(PX_ESITE, 8, "unknown or duplicate site")                                                          \
	X(PX_ERANKS, 10, "number of ranks differs from the hostfile")                                        \
	X(PX_ETIMEOUT, 11, "deadline passed")                                                                \
	X(PX_EIO, 12, "input/output error")                                                                  \
	X(PX_ECLOSED, 13, "connection closed")                                                               \
	X(PX_EMPI, 14, "native MPI error")                                                                   \
	X(PX_ECONF, 15, "error in the hostfile")                                                             \
	X(PX_ESTART, 16, "start command failed")                                                             \
	X(PX_ETRUNCATE, 17, "message longer than the receive buffer")

enum px_err {
	PX_OK = 0,
#define X(name, num, text) name = -num,
	PX_ERRORS(X)
#undef X
};

enum px_level { PX_LOG_ERROR, PX_LOG_WARN, PX_LOG_INFO, PX_LOG_DEBUG };

/* px_strerror: text of a PX_E... code; never NULL. */
const char *px_strerror(int err);

/* px_log_init: who speaks in every line ("pacxd[left] out"). level is the most
 * verbose one printed; PACX_LOG=error|warn|info|debug in the environment overrides it. */
void px_log_init(const char *who, enum px_level level);

/* px_log: one line "who: text" on standard error, written by a single write(). */
void px_log(enum px_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
