/* loaded.c: see loaded.h.
 *
 * Sources: gABI chapter 5 (dynamic linking); the GNU hash table as glibc's elf/dl-lookup.c reads it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "loaded.h"

#include <stdbool.h>
#include <stdint.h>

/* glibc has added the base to the pointers of most objects, but not of those it may not write to (vdso). */
static const void *place(const struct px_loaded *o, ElfW(Addr) ptr)
{
	return (const void *)(ptr < o->base ? ptr + o->base : ptr);
}

static bool equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static bool dynamic_read(const ElfW(Dyn) * dyn, struct px_loaded *o)
{
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_SYMTAB:
			o->sym = place(o, dyn->d_un.d_ptr);
			break;
		case DT_STRTAB:
			o->str = place(o, dyn->d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			o->gnu_hash = place(o, dyn->d_un.d_ptr);
			break;
		case DT_HASH:
			o->hash = place(o, dyn->d_un.d_ptr);
			break;
		case DT_JMPREL:
			o->plt = place(o, dyn->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			o->plt_bytes = dyn->d_un.d_val;
			break;
		case PX_DT_REL:
			o->rel = place(o, dyn->d_un.d_ptr);
			break;
		case PX_DT_RELSZ:
			o->rel_bytes = dyn->d_un.d_val;
			break;
		}
	}
	return o->sym && o->str;
}

int px_loaded_read(const struct dl_phdr_info *info, struct px_loaded *o)
{
	const ElfW(Dyn) *dyn = NULL;

	*o = (struct px_loaded){ .base = info->dlpi_addr, .path = info->dlpi_name ? info->dlpi_name : "" };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const ElfW(Dyn) *)(o->base + info->dlpi_phdr[i].p_vaddr);
		else if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
			o->relro = &info->dlpi_phdr[i];
	}
	return dynamic_read(dyn, o);
}

static void *defined(const struct px_loaded *o, const ElfW(Sym) * s, const char *name)
{
	unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);

	if (s->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE) ||
		(bind != STB_GLOBAL && bind != STB_WEAK) || !equal(o->str + s->st_name, name))
		return NULL;
	return (void *)(o->base + s->st_value);
}

static void *by_gnu_hash(const struct px_loaded *o, const char *name)
{
	const uint32_t nbuckets = o->gnu_hash[0], first = o->gnu_hash[1], bloom_words = o->gnu_hash[2];
	const uint32_t *buckets = o->gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = buckets + nbuckets;
	uint32_t h = 5381, i;
	void *found;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		h = h * 33 + *c;
	i = nbuckets ? buckets[h % nbuckets] : 0;
	if (i < first)
		return NULL;
	for (;; i++) {
		if ((chain[i - first] | 1) == (h | 1) && (found = defined(o, &o->sym[i], name)))
			return found;
		if (chain[i - first] & 1)
			return NULL;
	}
}

void *px_loaded_symbol(const struct px_loaded *o, const char *name)
{
	void *found = NULL;

	if (o->gnu_hash)
		return by_gnu_hash(o, name);
	for (uint32_t i = 0; o->hash && i < o->hash[1] && !found;
		i++) /* seldom; its chains are not worth code */
		found = defined(o, &o->sym[i], name);
	return found;
}

void *px_loaded_behind(const char *name)
{
	const struct link_map *m = _r_debug.r_map;
	void *found = NULL;

	while (m && m->l_ld != _DYNAMIC)
		m = m->l_next;
	while (m && !found && (m = m->l_next)) {
		struct px_loaded o = { .base = m->l_addr, .path = m->l_name };

		if (dynamic_read(m->l_ld, &o))
			found = px_loaded_symbol(&o, name);
	}
	return found;
}

static bool holds(const struct dl_phdr_info *info, const void *address)
{
	ElfW(Addr) at = (ElfW(Addr))address;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && at >= info->dlpi_addr + p->p_vaddr &&
			at < info->dlpi_addr + p->p_vaddr + p->p_memsz)
			return true;
	}
	return false;
}

struct search {
	const void *from, *to; /* to: only for px_loaded_before */
	const char *name;
	bool passed;
	void *found;
};

static int next_in(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	struct px_loaded o;

	(void)size;
	if (!s->passed)
		s->passed = holds(info, s->from);
	else if (px_loaded_read(info, &o))
		s->found = px_loaded_symbol(&o, s->name);
	return s->found != NULL;
}

void *px_loaded_next(const void *from, const char *name)
{
	struct search s = { .from = from, .name = name };

	dl_iterate_phdr(next_in, &s);
	return s.found;
}

/* 1: from is met first; 2: to is. */
static int which_first(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	if (holds(info, s->to))
		return 2;
	return holds(info, s->from) ? 1 : 0;
}

int px_loaded_before(const void *a, const void *b)
{
	struct search s = { .from = a, .to = b };

	return dl_iterate_phdr(which_first, &s) == 1;
}
