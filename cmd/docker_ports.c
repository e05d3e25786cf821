/* SPDX-License-Identifier: Apache-2.0
 *
 * docker_ports.c - `docker run -p`: we listen on the host, the gate connects
 * inside. So what comes in is counted and logged as what goes out is.
 *
 * The engine takes no word from a driver of which port it chose; so it is the
 * user who says it. Without an address it is 127.0.0.1, not every address of
 * the host: who wants those says 0.0.0.0.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sock.h"
#include "cmd/docker_impl.h"

static json_int_t number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

static int port_parse(const json_t *map, struct docker_port *port, char *reterr,
		      size_t cap)
{
	const json_int_t inside = number(map, "Port");
	const json_int_t host = number(map, "HostPort");
	const json_int_t last = number(map, "HostPortEnd");
	const char *ip = docker_text(map, "HostIP");

	if (number(map, "Proto") != IPPROTO_TCP) {
		snprintf(reterr, cap, "-p publishes TCP only here");
		return -EINVAL;
	}
	if (inside < 1 || inside > 65535 || host > 65535) {
		snprintf(reterr, cap, "-p has a port that is none");
		return -EINVAL;
	}
	if (host < 1 || (last > 0 && last != host)) {
		snprintf(reterr, cap,
			 "-p has to say which port of the host: -p 8080:%d",
			 (int)inside);
		return -EINVAL;
	}
	if (!ip || !*ip)
		port->at.ip = ip_v4(INADDR_LOOPBACK);
	else if (!ip_parse(ip, &port->at.ip)) {
		snprintf(reterr, cap, "-p has '%s' for an address of the host",
			 ip);
		return -EINVAL;
	}
	port->at.port = (uint16_t)host;
	port->inside = (uint16_t)inside;
	return 0;
}

/* The same may be asked for again, by another call. */
static bool known(const struct docker_endpoint *endpoint,
		  const struct docker_port *port)
{
	for (size_t i = 0; i < endpoint->ports; i++)
		if (ip_equal(&endpoint->port[i].at.ip, &port->at.ip) &&
		    endpoint->port[i].at.port == port->at.port)
			return true;
	return false;
}

int docker_ports_parse(const json_t *portmap, struct docker_endpoint *endpoint,
		       char *reterr, size_t cap)
{
	const size_t n = json_array_size(portmap);

	if (portmap && !json_is_null(portmap) && !json_is_array(portmap)) {
		snprintf(reterr, cap, "the engine's portmap is no list");
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		struct docker_port port = { 0 };

		if (port_parse(json_array_get(portmap, i), &port, reterr, cap) <
		    0)
			return -EINVAL;
		if (known(endpoint, &port))
			continue;
		if (endpoint->ports == DOCKER_PORTS_MAX) {
			snprintf(reterr, cap, "at most %d ports are published",
				 DOCKER_PORTS_MAX);
			return -EINVAL;
		}
		endpoint->port[endpoint->ports++] = port;
	}
	return 0;
}

static void port_failed(struct docker_endpoint *endpoint,
			const struct docker_port *port, const char *why)
{
	char ip[IP_TEXT_MAX];

	ip_format(&port->at.ip, ip);
	log_warn("docker: %s: %s port %u is not published: %s", endpoint->name,
		 ip, port->at.port, why);
	docker_refuse(&endpoint->busy, "port %u of %s is not published: %s",
		      port->at.port, ip, why);
}

static void opened(void *arg, struct daemon_sandbox *sandbox, int err,
		   const char *why)
{
	struct docker_endpoint *endpoint = arg;

	(void)sandbox;
	if (docker_endpoint_back(endpoint))
		return;
	if (err < 0) {
		port_failed(endpoint, &endpoint->port[endpoint->opening], why);
		return;
	}
	endpoint->port[endpoint->opening].open = true;
	docker_ports_open(endpoint);
}

/* The first that is not open, or NULL. */
static struct docker_port *closed_port(struct docker_endpoint *endpoint)
{
	for (size_t i = 0; i < endpoint->ports; i++)
		if (!endpoint->port[i].open) {
			endpoint->opening = i;
			return &endpoint->port[i];
		}
	return NULL;
}

static bool is_published(const struct daemon_sandbox *sandbox,
			 const struct docker_port *port)
{
	for (size_t i = 0; i < sandbox->publishes; i++)
		if (ip_equal(&sandbox->publish[i].at.ip, &port->at.ip) &&
		    sandbox->publish[i].at.port == port->at.port)
			return true;
	return false;
}

/* The daemon gives a new keeper what the old one had; if it was restarted, it
 * does not know. So at the first look it may, at the second we do. */
void docker_ports_check(struct docker_endpoint *endpoint)
{
	const struct daemon_sandbox *sandbox = docker_sandbox(endpoint);

	if (!endpoint->ports || endpoint->calls || endpoint->busy.fn ||
	    !sandbox || sandbox->state != SANDBOX_READY)
		return;
	if (strcmp(endpoint->session, sandbox->facts.session) != 0) {
		memcpy(endpoint->session, sandbox->facts.session,
		       sizeof(endpoint->session));
		for (size_t i = 0; i < endpoint->ports; i++)
			endpoint->port[i].open = false;
		endpoint->retried = false;
		return;
	}
	for (size_t i = 0; i < endpoint->ports; i++)
		endpoint->port[i].open |=
			is_published(sandbox, &endpoint->port[i]);
	if (endpoint->retried)
		return;
	endpoint->retried = true;
	docker_ports_open(endpoint);
}

/* One after the other: the answer names the first that fails. */
void docker_ports_open(struct docker_endpoint *endpoint)
{
	struct daemon_sandbox *sandbox = docker_sandbox(endpoint);
	struct docker_port *port = closed_port(endpoint);
	int fd, r;

	if (!port) {
		docker_ok(&endpoint->busy);
		return;
	}
	if (!sandbox) {
		docker_refuse(&endpoint->busy,
			      "the container's sandbox has ended");
		return;
	}
	fd = sock_listen_tcp(&port->at.ip, port->at.port, false);
	if (fd < 0) {
		port_failed(endpoint, port, strerror(-fd));
		return;
	}
	memcpy(endpoint->session, sandbox->facts.session,
	       sizeof(endpoint->session));
	endpoint->calls++;
	r = daemon_forward(endpoint->docker->daemon, sandbox, fd, &port->at,
			   port->inside, opened, endpoint);
	if (r < 0) {
		endpoint->calls--;
		port_failed(endpoint, port, strerror(-r));
	}
}
