/* json.h: just enough JSON (RFC 8259) to check, take apart and print what daemons report.
 *
 * Pure, allocates nothing. Nesting deeper than 32 levels counts as invalid.
 */
#ifndef PXD_JSON_H
#define PXD_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* pxd_json_valid: is this exactly one well-formed object? */
bool pxd_json_valid(const char *text, size_t n);
/* pxd_json_members: f for every member of the object, with the raw text of key (without quotes) and value;
 * a negative result of f ends it and is returned. text must be valid. */
int pxd_json_members(const char *text, size_t n,
	int (*f)(void *arg, const char *key, size_t nkey, const char *value, size_t nvalue), void *arg);
/* pxd_json_items: the same for every value of an array. text must be valid, and an array or something else, which has none. */
int pxd_json_items(
	const char *text, size_t n, int (*f)(void *arg, const char *value, size_t nvalue), void *arg);
/* pxd_json_text: a string value without quotes and escapes ('?' for what is not plain text), cut to cap. */
void pxd_json_text(const char *value, size_t n, char *out, size_t cap);
/* pxd_json_print: s as a JSON string, with quotes. */
void pxd_json_print(FILE *f, const char *s);

#endif
