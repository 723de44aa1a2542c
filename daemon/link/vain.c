/* vain.c: see vain.h. */
#include "vain.h"

#define REST_MAX 256

static struct pxd_rest *place_of(struct pxd_vain *v, uint64_t flow)
{
	return &v->flow[(flow ^ flow >> 32) % PXD_VAIN_FLOWS];
}

bool pxd_vain_rests(struct pxd_vain *v, uint64_t flow, unsigned elem)
{
	struct pxd_rest *r = place_of(v, flow);

	if (r->flow != flow)
		r = &v->kind[pxd_elem_class(elem)];
	if (r->left == 0)
		return false;
	r->left--;
	return true;
}

static void note(struct pxd_rest *r, bool paid)
{
	if (paid) {
		r->left = r->next = 0;
	} else if (r->left == 0) { /* else it was packed before the rest began */
		r->next = r->next == 0 ? 1 : r->next < REST_MAX ? 2 * r->next : REST_MAX;
		r->left = r->next;
	}
}

void pxd_vain_learn(struct pxd_vain *v, uint64_t flow, unsigned elem, bool paid)
{
	struct pxd_rest *r = place_of(v, flow);

	if (r->flow != flow)
		*r = (struct pxd_rest){ .flow = flow };
	note(r, paid);
	note(&v->kind[pxd_elem_class(elem)], paid);
}
