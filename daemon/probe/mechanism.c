// SPDX-License-Identifier: BSD-2-Clause
#include "probe/mechanism.h"

const char *probe_mechanism_name(enum probe_mechanism m)
{
	switch (m) {
	case PROBE_MULTI:
		return "multi";
	case PROBE_TRACEFS:
		return "tracefs";
	case PROBE_MULTI_ALL:
		return "multi-all";
	}
	return "";
}

const char *probe_mechanism_text(enum probe_mechanism m)
{
	switch (m) {
	case PROBE_MULTI:
		return "a multi-uprobe link";
	case PROBE_TRACEFS:
		return "a uprobe event in tracefs";
	case PROBE_MULTI_ALL:
		return "a multi-uprobe link that slows every process with this interpreter";
	}
	return "";
}
