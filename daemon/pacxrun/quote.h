/* quote.h: placeholders of start commands, and getting words through shells unharmed.
 *
 * Used by plan.c and tests only. Pure: text in, text out; owns nothing.
 *
 * How often a word is quoted. A start command is read by one local /bin/sh. A placeholder that stands
 * behind a remote shell word (ssh, rsh, remsh, slogin, oarsh; with or without directory) of the same
 * simple command is quoted once more for each of them, because ssh joins its arguments with blanks and
 * the remote shell reads them again: "ssh gate ssh node mpirun {app}" quotes three times. Inside '...'
 * or "..." the quotes themselves stand for the local shell's level, and the text is quoted for the
 * shell that reads the inner command ("sh -c '... {app}'", "ssh host 'cd x && mpirun {app}'"). Nested
 * quotes inside quotes are not followed.
 */
#ifndef PXD_QUOTE_H
#define PXD_QUOTE_H

#include "base/buf.h"

/* A placeholder: name without braces, and the words it stands for (NULL-terminated). */
struct pxd_hole {
	const char *name;
	char *const *words;
};

/* pxd_quote_word: append one word such that a POSIX shell reads it back unchanged. 0 or PX_ENOMEM. */
int pxd_quote_word(struct px_buf *b, const char *word);
/* pxd_quote_words: all of them with blanks between, quoted for `levels` shells. 0 or PX_ENOMEM. */
int pxd_quote_words(struct px_buf *b, char *const *words, int levels);

/* pxd_template_fill: replace {name} in a start command. *out is new. "${name}" and braces around anything
 * that is not nearly a placeholder's name stay. 0, PX_ENOMEM, or PX_EINVAL: *bad (PXD_HOLE_MAX bytes) is
 * then the unknown name and *near the one that was probably meant. */
#define PXD_HOLE_MAX 32
int pxd_template_fill(
	const char *text, const struct pxd_hole *holes, int nholes, char **out, char *bad, const char **near);
/* pxd_template_has: does the command contain {name} (not as "${name}")? */
int pxd_template_has(const char *text, const char *name);
/* pxd_template_remote: does the command go through a remote shell? */
int pxd_template_remote(const char *text);
/* pxd_template_remote_at: the end of the k-th remote shell word (from 0), NULL = there are not so many. */
const char *pxd_template_remote_at(const char *text, int k);
/* pxd_template_way: the part of a start command that brings {name} to where it runs: the simple command around it up to the placeholder,
 * then `then` instead, closed with the quote it stands in. A template. NULL: no {name}, not behind a remote shell, no memory. */
char *pxd_template_way(const char *text, const char *name, const char *then);
/* pxd_text_replace: plain replacement of {name} by the first word of the hole, without quoting, for
 * programs and arguments. NULL: out of memory. */
char *pxd_text_replace(const char *text, const struct pxd_hole *holes, int nholes);

#endif
