// SPDX-License-Identifier: GPL-2.0
/*
 * The relay: a payload goes from an asker to the registered daemon and back,
 * and nowhere else.
 */
#include "fixture.h"

static int relay(struct nl *nl, uint8_t cmd, const void *payload, size_t size, uint32_t port,
		 uint32_t cookie)
{
	static char buf[2 * NL_BUF_SIZE];
	struct nlmsghdr *nlh = nl_begin(nl, buf, cmd, 0);
	struct nlattr *nest = mnl_attr_nest_start(nlh, PLOG_A_RELAY);

	if (cmd == PLOG_CMD_RELAY_REPLY)
		mnl_attr_put_u32(nlh, PLOG_A_RELAY_PORT, port);
	mnl_attr_put_u32(nlh, PLOG_A_RELAY_COOKIE, cookie);
	mnl_attr_put(nlh, PLOG_A_RELAY_PAYLOAD, size, payload);
	mnl_attr_nest_end(nlh, nest);
	return nl_talk(nl, nlh, NULL, NULL);
}

TEST_F(log, relay_without_a_daemon_is_ehostdown)
{
	EXPECT_REFUSED(EHOSTDOWN, relay(&self->in.nl, PLOG_CMD_RELAY_REQUEST, "{}", 2, 0, 1));
}

TEST_F(log, relay_to_a_daemon_without_a_port_is_refused)
{
	int control = control_open(0);

	ASSERT_EQ(0, control_register(control, 0, NULL));
	EXPECT_REFUSED(EHOSTDOWN, relay(&self->in.nl, PLOG_CMD_RELAY_REQUEST, "{}", 2, 0, 1));
	close(control);
}

/* Let a payload of @size bytes go to a daemon and come back; 0 or what failed. */
static int roundtrip(struct nl *asker, struct nl *daemon, size_t size)
{
	static uint8_t payload[PLOG_RELAY_MAX + 8];
	static char buf[2 * NL_BUF_SIZE];
	const struct nlattr *tb[PLOG_A_RELAY_MAX + 1];
	struct nlmsghdr *nlh;
	uint32_t cookie = (uint32_t)(size * 3 + 1);
	size_t i;
	int ret;

	for (i = 0; i < size; i++)
		payload[i] = (uint8_t)(i * 13);
	ret = relay(asker, PLOG_CMD_RELAY_REQUEST, payload, size, 0, cookie);
	if (ret)
		return ret;
	nlh = nl_event(daemon, buf, 5000);
	if (!nlh || !nl_nest(nlh, PLOG_A_RELAY, tb, PLOG_A_RELAY_MAX))
		return 1;
	if (!tb[PLOG_A_RELAY_PORT] || mnl_attr_get_u32(tb[PLOG_A_RELAY_PORT]) != asker->port)
		return 2;
	if (!tb[PLOG_A_RELAY_COOKIE] || mnl_attr_get_u32(tb[PLOG_A_RELAY_COOKIE]) != cookie)
		return 3;
	if (!tb[PLOG_A_RELAY_PAYLOAD] ||
	    mnl_attr_get_payload_len(tb[PLOG_A_RELAY_PAYLOAD]) != size ||
	    memcmp(mnl_attr_get_payload(tb[PLOG_A_RELAY_PAYLOAD]), payload, size))
		return 4;
	for (i = 0; i < size; i++)
		payload[i] ^= 0xff;
	ret = relay(daemon, PLOG_CMD_RELAY_REPLY, payload, size, asker->port, cookie);
	if (ret)
		return ret;
	nlh = nl_event(asker, buf, 5000);
	if (!nlh || !nl_nest(nlh, PLOG_A_RELAY, tb, PLOG_A_RELAY_MAX))
		return 5;
	if (!tb[PLOG_A_RELAY_COOKIE] || mnl_attr_get_u32(tb[PLOG_A_RELAY_COOKIE]) != cookie)
		return 6;
	if (!tb[PLOG_A_RELAY_PAYLOAD] ||
	    mnl_attr_get_payload_len(tb[PLOG_A_RELAY_PAYLOAD]) != size ||
	    memcmp(mnl_attr_get_payload(tb[PLOG_A_RELAY_PAYLOAD]), payload, size))
		return 7;
	return 0;
}

TEST_F(log, relay_goes_there_and_back)
{
	static const size_t sizes[] = { 1, 2, 100, 4096, PLOG_RELAY_MAX };
	int control = control_open(0);
	struct nl daemon;
	size_t i;

	ASSERT_EQ(0, nl_open(&daemon));
	ASSERT_EQ(0, control_register(control, daemon.port, NULL));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		EXPECT_EQ(0, roundtrip(&self->in.nl, &daemon, sizes[i])) {
			TH_LOG("%zu bytes: %s %s", sizes[i], self->in.nl.error_text,
			       daemon.error_text);
		}
	}
	nl_close(&daemon);
	close(control);
}

TEST_F(log, relay_refuses_what_is_too_large_or_empty)
{
	static uint8_t payload[PLOG_RELAY_MAX + 1];
	int control = control_open(0);
	struct nl daemon;
	char buf[NL_BUF_SIZE];

	ASSERT_EQ(0, nl_open(&daemon));
	ASSERT_EQ(0, control_register(control, daemon.port, NULL));
	EXPECT_REFUSED_SOMEHOW(relay(&self->in.nl, PLOG_CMD_RELAY_REQUEST, payload,
				     sizeof(payload), 0, 1));
	EXPECT_REFUSED_SOMEHOW(nl_talk(&self->in.nl,
				       nl_begin(&self->in.nl, buf, PLOG_CMD_RELAY_REQUEST, 0),
				       NULL, NULL));
	EXPECT_EQ(NULL, nl_event(&daemon, buf, 100));
	nl_close(&daemon);
	close(control);
}

TEST_F(log, relay_replies_only_from_the_daemon)
{
	int control = control_open(0);
	struct nl daemon, victim;
	char buf[NL_BUF_SIZE];

	ASSERT_EQ(0, nl_open(&daemon));
	ASSERT_EQ(0, nl_open(&victim));
	ASSERT_EQ(0, control_register(control, daemon.port, NULL));
	EXPECT_REFUSED_SOMEHOW(relay(&self->in.nl, PLOG_CMD_RELAY_REPLY, "{}", 2, victim.port,
				     1));
	EXPECT_EQ(NULL, nl_event(&victim, buf, 100));
	/* to a port that is not there */
	EXPECT_GT(0, relay(&daemon, PLOG_CMD_RELAY_REPLY, "{}", 2, 0x7fffffff, 1));
	nl_close(&daemon);
	nl_close(&victim);
	close(control);
}

TEST_F(log, relay_to_a_daemon_that_closed_its_socket)
{
	int control = control_open(0);
	struct nl daemon;

	ASSERT_EQ(0, nl_open(&daemon));
	ASSERT_EQ(0, control_register(control, daemon.port, NULL));
	nl_close(&daemon);
	EXPECT_REFUSED_SOMEHOW(relay(&self->in.nl, PLOG_CMD_RELAY_REQUEST, "{}", 2, 0, 1));
	close(control);
}

TEST_F(log, relay_to_a_daemon_that_does_not_read)
{
	static uint8_t payload[PLOG_RELAY_MAX];
	int control = control_open(0), i, ret = 0;
	struct nl daemon;

	ASSERT_EQ(0, nl_open(&daemon));
	ASSERT_EQ(0, control_register(control, daemon.port, NULL));
	for (i = 0; i < 200 && !ret; i++)
		ret = relay(&self->in.nl, PLOG_CMD_RELAY_REQUEST, payload, sizeof(payload), 0, 1);
	/* its buffer is full at some time; nobody waits for it */
	EXPECT_GT(0, ret);
	EXPECT_STRNE("", self->in.nl.error_text);
	nl_close(&daemon);
	close(control);
}

SELFTEST_MAIN
