// SPDX-License-Identifier: MIT
/*
 * plogd's end of the netlink socket: its own file. Messages are as long as they say, each in a
 * block of its own; whatever the attributes in them are, they are read within it.
 */
#include "fuzz_relay.h"

/* fuzz_relay.c looks at the answers that admin.c gives */
#define netlink_relay_reply netlink_relay_reply_of_the_module
#include "../../daemon/broker/netlink.c"
#undef netlink_relay_reply
#include "../../daemon/broker/netlink_retention.c"

/* ---- what it asks of the rest of the broker ---- */

void broker_stop(struct broker *b, int exit_code)
{
	(void)b;
	fuzz_must(exit_code == 1);
}

void janitor_tell(struct broker *b, struct log *log)
{
	(void)b;
	(void)log;
}

void janitor_tell_name(struct broker *b, const char *topic, uint32_t index)
{
	(void)b;
	(void)index;
	fuzz_must(strlen(topic) < 256);
}

int log_bases_add(struct log_bases *bases, int64_t base)
{
	(void)bases;
	fuzz_must(base >= 0);
	return 0;
}

/* ---- the messages ---- */

static void read_message(struct netlink *nl, const struct nlmsghdr *nlh)
{
	struct unknown unknown = { .topics = NULL };
	struct netlink_instance instance = { 0 };
	struct family family = { 0 };
	struct log_bases bases = { 0 };
	const char *text;

	on_event(nl, nlh);
	on_relayed(nl, nlh);
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		text = extack_text(nlh);
		if (text)
			fuzz_must(text + strlen(text) <
				  (const char *)nlh + NLMSG_ALIGN(nlh->nlmsg_len));
		return;
	}
	fuzz_must(!read_family(nlh, &family) && !read_instance(nlh, &instance));
	fuzz_must(strlen(instance.label) < sizeof(instance.label));
	fuzz_must(!collect_unknown(nlh, &unknown) && unknown.count <= 1);
	free(unknown.list);
	fuzz_must(!tell_dumped(nlh, NULL) && !note_base(nlh, &bases));
}

void fuzz_relay_messages(struct broker *broker, const uint8_t *p, size_t n, bool daemon)
{
	struct netlink nl = { .broker = broker, .family = FUZZ_FAMILY };

	/* kind, command, flags, bytes behind the header, in one or two bytes each */
	while (n >= 5) {
		static const uint16_t kinds[] = { FUZZ_FAMILY, NLMSG_ERROR, NLMSG_DONE, 0x77 };
		size_t size = (size_t)p[3] << 8 | p[4];
		struct nlmsghdr *nlh;

		size = size < n - 5 ? size : n - 5;
		/* libmnl takes the bytes up to the next of four as a part of it */
		nlh = calloc(1, NLMSG_ALIGN(NLMSG_HDRLEN + size));
		fuzz_must(nlh != NULL);
		nlh->nlmsg_len = NLMSG_HDRLEN + (uint32_t)size;
		nlh->nlmsg_type = kinds[p[0] % 4];
		nlh->nlmsg_flags = (uint16_t)(p[2] << 8);
		memcpy((uint8_t *)nlh + NLMSG_HDRLEN, p + 5, size);
		if (size && nlh->nlmsg_type == FUZZ_FAMILY)
			((struct genlmsghdr *)mnl_nlmsg_get_payload(nlh))->cmd = p[1];
		if (daemon)
			read_message(&nl, nlh);
		else
			fuzz_relay_message(nlh, p[1]);
		free(nlh);
		p += 5 + size;
		n -= 5 + size;
	}
}
