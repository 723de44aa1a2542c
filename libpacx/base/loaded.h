/* loaded.h: what the dynamic linker has loaded, read from its own tables.
 *
 * For whoever may not ask dlsym: because dlsym itself is what is looked for (libpacx stands in front of it), or because
 * the answer has to come from one object alone and not from those that it needs. Allocates nothing, takes no lock but
 * the linker's, works from the first constructor on. Objects are in the order in which symbols are searched.
 */
#ifndef PX_LOADED_H
#define PX_LOADED_H

#include <elf.h>
#include <link.h>
#include <stddef.h>

/* Machines differ in how their relocations are written, in their names for those of pointers to functions and variables, and in the
 * width of both. */
#if defined(__i386__)
typedef ElfW(Rel) px_reloc;
#define PX_DT_REL      DT_REL
#define PX_DT_RELSZ    DT_RELSZ
#define PX_R_JUMP_SLOT R_386_JMP_SLOT
#define PX_R_GLOB_DAT  R_386_GLOB_DAT
#else
typedef ElfW(Rela) px_reloc;
#define PX_DT_REL   DT_RELA
#define PX_DT_RELSZ DT_RELASZ
#if defined(__x86_64__)
#define PX_R_JUMP_SLOT R_X86_64_JUMP_SLOT
#define PX_R_GLOB_DAT  R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define PX_R_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define PX_R_GLOB_DAT  R_AARCH64_GLOB_DAT
#elif defined(__s390x__)
#define PX_R_JUMP_SLOT R_390_JMP_SLOT
#define PX_R_GLOB_DAT  R_390_GLOB_DAT
#else
#error "add the names of the relocations of this architecture"
#endif
#endif
#if __ELF_NATIVE_CLASS == 32
#define PX_R_TYPE(info) ELF32_R_TYPE(info)
#define PX_R_SYM(info)  ELF32_R_SYM(info)
#else
#define PX_R_TYPE(info) ELF64_R_TYPE(info)
#define PX_R_SYM(info)  ELF64_R_SYM(info)
#endif

/* The dynamic section of one loaded object; what it does not have is NULL or 0. */
struct px_loaded {
	ElfW(Addr) base;
	const char *path;
	const ElfW(Sym) * sym;
	const char *str;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
	const px_reloc *plt, *rel;
	size_t plt_bytes, rel_bytes;
	const ElfW(Phdr) * relro;
};

/* px_loaded_read: 0 for an object without symbols. */
int px_loaded_read(const struct dl_phdr_info *info, struct px_loaded *o);
/* px_loaded_symbol: the address of the function or variable `name` that o itself defines, or NULL. */
void *px_loaded_symbol(const struct px_loaded *o, const char *name);
/* px_loaded_behind: the first definition of name in the objects after the one that holds this very code. Calls nothing at all, for a
 * sanitizer asks for dlsym before any function that it stands in front of works. */
void *px_loaded_behind(const char *name);
/* px_loaded_next: the first definition of name in the objects after the one in which the address `from` lies. */
void *px_loaded_next(const void *from, const char *name);
/* px_loaded_before: was the object of address a loaded before that of b? False if they are the same or unknown. */
int px_loaded_before(const void *a, const void *b);

#endif
