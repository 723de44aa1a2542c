/* record.c: see record.h. */
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"

/* How much of json[0..n) goes into a record with `room` bytes: the reader trims blanks, so neither
 * this fragment's end nor the next one's beginning may be one. */
static size_t fragment_len(const char *json, size_t n, size_t room)
{
	size_t k = n < room ? n : room;

	while (k > 1 && k < n && (json[k - 1] == ' ' || json[k] == ' '))
		k--;
	return k;
}

static int record_write(int fd, const char *record)
{
	ssize_t n;

	/* A pipe takes 256 bytes whole (PIPE_BUF), so lines of others do not mix in. */
	do
		n = write(fd, record, PXD_RECORD);
	while (n < 0 && errno == EINTR);
	return n == PXD_RECORD ? 0 : PX_EIO;
}

int pxd_record_send(int fd, const char *site, const char *role, const char *kind, const char *json, size_t n)
{
	char record[PXD_RECORD + 1];
	/* The longest head: five digits for each number. */
	int head = snprintf(record, sizeof record, PXD_RECORD_MARK "%s:%s %s 65536/65536 ", site, role, kind);
	size_t room, total = 0, at, k;

	if (head < 0 || head > PXD_RECORD - 64)
		return PX_EINVAL;
	room = PXD_RECORD - 1 - (size_t)head;
	for (at = 0; at < n; at += fragment_len(json + at, n - at, room))
		total++;
	at = 0;
	for (size_t seq = 1; seq <= total; seq++, at += k) {
		k = fragment_len(json + at, n - at, room);
		memset(record, ' ', PXD_RECORD);
		head = snprintf(record, sizeof record, PXD_RECORD_MARK "%s:%s %s %zu/%zu ", site, role, kind,
			seq, total);
		record[head] = ' ';
		memcpy(record + head, json + at, k);
		record[PXD_RECORD - 1] = '\n';
		if (record_write(fd, record) < 0)
			return PX_EIO;
	}
	return 0;
}

const char *pxd_record_value(const char *record, const char *site, const char *role, const char *kind)
{
	char head[PXD_RECORD];
	size_t n = (size_t)snprintf(head, sizeof head, PXD_RECORD_MARK "%s:%s %s 1/1 ", site, role, kind);

	return n < sizeof head && memcmp(record, head, n) == 0 ? record + n : NULL;
}
