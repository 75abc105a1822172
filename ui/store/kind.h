/*
 * kind.h - the kinds of items in a saved chat.
 */
#ifndef MEMWALL_UI_STORE_KIND_H
#define MEMWALL_UI_STORE_KIND_H

enum store_kind { STORE_SYSTEM, STORE_USER, STORE_ANSWER, STORE_NOTICE };

#endif
