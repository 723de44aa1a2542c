/* order.c - what dlsym(RTLD_NEXT) and dlopen owe to their caller. Built three times: as liborder_a.so and liborder_b.so (-DPART), where a's
 * order_who is the next one's after itself and order_open finds a library by its own RUNPATH; and as the program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#ifdef PART
const char *order_who(void);
const char *order_who(void)
{
	const char *(*next)(void) = (const char *(*)(void))(uintptr_t)dlsym(RTLD_NEXT, "order_who");
	static char text[100];

	snprintf(text, sizeof text, "%s %s", PART, next ? next() : "end");
	return text;
}
void *order_open(const char *name);
void *order_open(const char *name)
{
	return dlopen(name, RTLD_NOW);
}
#else
const char *order_who(void);
void *order_open(const char *name);
int main(void)
{
	void *(*allocate)(size_t) = (void *(*)(size_t))(uintptr_t)dlsym(RTLD_NEXT, "malloc");

	printf("%s, %s, %s, %s\n", order_who(), order_open("liborder_c.so") ? "found" : "not found",
		dlopen("liborder_c.so", RTLD_NOW) ? "loaded" : "not loaded",
		allocate && allocate(5) ? "malloc" : "no malloc");
	return 0;
}
#endif
