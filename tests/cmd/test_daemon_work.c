/* SPDX-License-Identifier: Apache-2.0
 *
 * In which order the daemon's threads do what they are given. All but one of
 * them are kept busy, so that there is one order.
 */
#include <event2/event.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/daemon_work.h"

#define BUSY 3 /* as many as there are threads */
#define MANY 60

struct job {
	struct work work;
	char name[16];
	sem_t *held; /* NULL: it is done at once */
};

static struct {
	struct event_base *base;
	struct workers *workers;
	sem_t started, held[BUSY];
	struct job job[BUSY + MANY + 8];
	size_t jobs, told;
	pthread_mutex_t lock;
	char order[2048]; /* names of what was run */
} rig = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

static void run(struct work *work)
{
	struct job *job = (struct job *)(void *)work;
	size_t len;

	pthread_mutex_lock(&rig.lock);
	len = strlen(rig.order);
	snprintf(rig.order + len, sizeof(rig.order) - len, "%s ", job->name);
	pthread_mutex_unlock(&rig.lock);
	if (!job->held)
		return;
	sem_post(&rig.started);
	wait_for(job->held);
}

static void done(struct work *work)
{
	(void)work;
	rig.told++;
}

static struct job *add(uid_t uid, const char *key, const char *name)
{
	struct job *job = &rig.job[rig.jobs++];

	*job = (struct job){
		.work = { .run = run, .done = done, .uid = uid },
	};
	snprintf(job->work.key, sizeof(job->work.key), "%s", key);
	snprintf(job->name, sizeof(job->name), "%s", name);
	return job;
}

static void go(struct job *job)
{
	work_add(rig.workers, &job->work);
}

/* Each thread has one of user 0. */
static void open_busy(void)
{
	rig.jobs = rig.told = 0;
	*rig.order = '\0';
	rig.base = event_base_new();
	assert_int_equal(work_open(rig.base, &rig.workers), 0);
	sem_init(&rig.started, 0, 0);
	for (size_t i = 0; i < BUSY; i++) {
		struct job *job = add(0, "", "busy");

		sem_init(&rig.held[i], 0, 0);
		job->held = &rig.held[i];
		go(job);
	}
	for (size_t i = 0; i < BUSY; i++)
		wait_for(&rig.started);
	*rig.order = '\0';
}

static void until_told(size_t n)
{
	while (rig.told < n)
		event_base_loop(rig.base, EVLOOP_ONCE);
}

static void close_all(void)
{
	work_close(rig.workers);
	assert_int_equal(rig.told, rig.jobs);
	event_base_free(rig.base);
}

static void expect(const char *order)
{
	assert_string_equal(rig.order, order);
}

/* One thread does all that there is. */
static void one_does_all(const char *order)
{
	sem_post(&rig.held[0]);
	until_told(rig.jobs - (BUSY - 1));
	expect(order);
	sem_post(&rig.held[1]);
	sem_post(&rig.held[2]);
	close_all();
}

/* Whoever asks for much is not before everybody else. */
static void test_fair(void **state)
{
	char name[16], want[sizeof(rig.order)] = "theirs others too ";

	(void)state;
	open_busy();
	for (size_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		go(add(0, "", name));
		strcat(want, name);
		strcat(want, " ");
	}
	go(add(33, "", "theirs"));
	go(add(33, "", "too"));
	go(add(34, "", "others"));
	one_does_all(want);
}

/* Also where there are more such users than threads, each gets his turn. */
static void test_rounds(void **state)
{
	char name[16], want[sizeof(rig.order)] = "";

	(void)state;
	open_busy();
	for (uid_t uid = 'a'; uid <= 'e'; uid++)
		for (size_t i = 0; i < 3; i++) {
			snprintf(name, sizeof(name), "%c%zu", (char)uid, i);
			go(add(uid, "", name));
		}
	go(add('f', "", "f0"));
	for (size_t i = 0; i < 3; i++)
		for (uid_t uid = 'a'; uid <= 'f'; uid++) {
			snprintf(name, sizeof(name), "%c%zu ", (char)uid, i);
			if (uid < 'f' || i == 0)
				strcat(want, name);
		}
	one_does_all(want);
}

/* One after the other, as they were added; others do not wait for them. */
static void test_one_sandbox(void **state)
{
	struct job *first;
	sem_t mine;

	(void)state;
	open_busy();
	sem_init(&mine, 0, 0);
	first = add(33, "box", "first");
	first->held = &mine;
	go(first);
	go(add(33, "box", "second"));
	go(add(0, "box", "third"));
	go(add(0, "other", "free"));
	sem_post(&rig.held[1]);
	wait_for(&rig.started); /* the first */
	sem_post(&rig.held[2]);
	until_told(3); /* two that were busy, and what is free */
	expect("first free ");
	sem_post(&mine);
	until_told(6);
	expect("first free second third ");
	sem_post(&rig.held[0]);
	close_all();
}

/* A thread is left for the short ones. */
static void test_long_ones(void **state)
{
	struct job *first, *second;
	sem_t mine;

	(void)state;
	open_busy();
	sem_init(&mine, 0, 0);
	first = add(33, "", "long");
	second = add(34, "", "longer");
	first->work.bytes = second->work.bytes = (size_t)2 << 20;
	first->held = &mine;
	go(first);
	go(second);
	go(add(34, "", "short"));
	assert_int_equal(work_bytes(rig.workers, 33), (size_t)2 << 20);
	sem_post(&rig.held[0]);
	wait_for(&rig.started); /* the first */
	sem_post(&rig.held[1]);
	until_told(3);
	expect("long short ");
	sem_post(&mine);
	until_told(5);
	expect("long short longer ");
	sem_post(&rig.held[2]);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_one_sandbox),
		cmocka_unit_test(test_long_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
