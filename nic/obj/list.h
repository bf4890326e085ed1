/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list - doubly linked lists without allocation
 *
 * The caller holds the lease, or owns the list.  An item that is in no list is linked to
 * itself, so removing it again does no harm.  The links are the only state.
 */
#ifndef P3_NIC_OBJ_LIST_H
#define P3_NIC_OBJ_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct p3_link {
	struct p3_link *next, *prev;
};

static inline void p3_list_init(struct p3_link *l)
{
	l->next = l->prev = l;
}

static inline bool p3_list_empty(const struct p3_link *l)
{
	return l->next == l;
}

static inline void p3_list_add(struct p3_link *list, struct p3_link *item)
{
	item->prev = list->prev;
	item->next = list;
	list->prev->next = item;
	list->prev = item;
}

static inline void p3_list_del(struct p3_link *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	item->next = item->prev = item;
}

#define p3_item(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

/* Walk a list; the body may take the item itself off the list. */
#define p3_list_each(it, list)                                                           \
	for (struct p3_link *it = (list)->next, *p3_next_ = it->next; it != (list);      \
		it = p3_next_, p3_next_ = it->next)

#endif
