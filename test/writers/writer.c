/*
 * writer VERSION NAME CLUSTER FLAGS: an instrumented program for the tests, with PCP's libpcp_mmv.
 *
 * Writes a file of that version with a metric of each type, metrics over an indom, help texts, and in version 3 labels.
 * Says "ready" when the file is complete. Then each line on standard input counts once more, and is answered by the
 * count. Ends with its standard input; the file stays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pcp/pmapi.h>
#include <pcp/mmv_stats.h>

#define COUNTOF(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define DISKS 7

static const mmv_metric2_t metrics[] = {
	{ "count", 1, MMV_TYPE_U64, MMV_SEM_COUNTER, MMV_UNITS(0, 0, 1, 0, 0, PM_COUNT_ONE), 0,
	  "lines read", "Lines read from standard input.\nA second line of help." },
	{ "type.i32", 2, MMV_TYPE_I32, MMV_SEM_INSTANT, MMV_UNITS(0, 0, 0, 0, 0, 0), 0, "smallest of 32 bits", NULL },
	{ "type.u32", 3, MMV_TYPE_U32, MMV_SEM_DISCRETE, MMV_UNITS(1, 0, 0, PM_SPACE_KBYTE, 0, 0), 0, NULL,
	  "Only the long text." },
	{ "type.i64", 4, MMV_TYPE_I64, MMV_SEM_INSTANT, MMV_UNITS(1, -1, 0, PM_SPACE_MBYTE, PM_TIME_SEC, 0), 0, NULL, NULL },
	{ "type.u64", 5, MMV_TYPE_U64, MMV_SEM_COUNTER, MMV_UNITS(0, 1, 0, 0, PM_TIME_MSEC, 0), 0, NULL, NULL },
	{ "type.float", 6, MMV_TYPE_FLOAT, MMV_SEM_INSTANT, MMV_UNITS(0, 0, 1, 0, 0, 3), 0, NULL, NULL },
	{ "type.double", 7, MMV_TYPE_DOUBLE, MMV_SEM_INSTANT, MMV_UNITS(0, 0, 0, 0, 0, 0), 0, NULL, NULL },
	{ "type.string", 8, MMV_TYPE_STRING, MMV_SEM_DISCRETE, MMV_UNITS(0, 0, 0, 0, 0, 0), 0, NULL, NULL },
	{ "type.elapsed", 1023, MMV_TYPE_ELAPSED, MMV_SEM_COUNTER, MMV_UNITS(0, 1, 0, 0, PM_TIME_USEC, 0), 0, NULL, NULL },
	{ "disk.reads", 20, MMV_TYPE_U32, MMV_SEM_COUNTER, MMV_UNITS(0, 0, 1, 0, 0, PM_COUNT_ONE), DISKS, "reads",
	  "Reads from each disk." },
	{ "disk.busy", 21, MMV_TYPE_DOUBLE, MMV_SEM_INSTANT, MMV_UNITS(0, 0, 0, 0, 0, 0), DISKS, NULL, NULL },
	{ "disk.model", 22, MMV_TYPE_STRING, MMV_SEM_DISCRETE, MMV_UNITS(0, 0, 0, 0, 0, 0), DISKS, NULL, NULL },
	/* From here on only in versions 2 and 3, whose names may be longer. */
	{ "with.a.name.that.is.longer.than.the.sixty.three.bytes.that.version.one.has.room.for", 30, MMV_TYPE_I32,
	  MMV_SEM_INSTANT, MMV_UNITS(0, 0, 0, 0, 0, 0), 0, NULL, NULL },
};

static const mmv_instances2_t disks[] = {
	{ 0, "sda" },
	{ 4, "nvme0n1 of the first controller" },
	{ 2, "sdb" },
};

static void *
version1(const char *name, int cluster, int flags)
{
	static mmv_metric_t m[COUNTOF(metrics) - 1];
	static mmv_instances_t inst[COUNTOF(disks)];
	static mmv_indom_t indom = { DISKS, COUNTOF(disks), inst, "disks", "The disks of the machine." };
	int i;

	for (i = 0; i < COUNTOF(m); i++) {
		snprintf(m[i].name, sizeof(m[i].name), "%s", metrics[i].name);
		m[i].item = metrics[i].item;
		m[i].type = metrics[i].type;
		m[i].semantics = metrics[i].semantics;
		m[i].dimension = metrics[i].dimension;
		m[i].indom = metrics[i].indom;
		m[i].shorttext = metrics[i].shorttext;
		m[i].helptext = metrics[i].helptext;
	}
	for (i = 0; i < COUNTOF(disks); i++) {
		inst[i].internal = disks[i].internal;
		snprintf(inst[i].external, sizeof(inst[i].external), "%s", disks[i].external);
	}
	return mmv_stats_init(name, cluster, flags, m, COUNTOF(m), &indom, 1);
}

static void *
version2(const char *name, int cluster, int flags)
{
	static mmv_indom2_t indom = { DISKS, COUNTOF(disks), (mmv_instances2_t *)disks, "disks", "The disks of the machine." };

	return mmv_stats2_init(name, cluster, flags, metrics, COUNTOF(metrics), &indom, 1);
}

static void *
version3(const char *name, int cluster, int flags)
{
	mmv_registry_t *r = mmv_stats_registry(name, cluster, flags);
	int i;

	if (r == NULL)
		return NULL;
	for (i = 0; i < COUNTOF(metrics); i++)
		mmv_stats_add_metric(r, metrics[i].name, metrics[i].item, metrics[i].type, metrics[i].semantics,
				metrics[i].dimension, metrics[i].indom, metrics[i].shorttext, metrics[i].helptext);
	mmv_stats_add_indom(r, DISKS, "disks", "The disks of the machine.");
	for (i = 0; i < COUNTOF(disks); i++)
		mmv_stats_add_instance(r, DISKS, disks[i].internal, disks[i].external);
	mmv_stats_add_registry_label(r, "app", "\"writer\"", MMV_STRING_TYPE, 0);
	mmv_stats_add_registry_label(r, "beta", "true", MMV_BOOLEAN_TYPE, 1);
	mmv_stats_add_metric_label(r, 1, "source", "\"stdin\"", MMV_STRING_TYPE, 0);
	mmv_stats_add_metric_label(r, 20, "limit", "1.5", MMV_NUMBER_TYPE, 0);
	mmv_stats_add_metric_label(r, 20, "owner", "null", MMV_NULL_TYPE, 1);
	mmv_stats_add_indom_label(r, DISKS, "bus", "\"sata\"", MMV_STRING_TYPE, 0);
	mmv_stats_add_instance_label(r, DISKS, 0, "slot", "1", MMV_NUMBER_TYPE, 0);
	mmv_stats_add_instance_label(r, DISKS, 2, "slot", "2", MMV_NUMBER_TYPE, 0);
	mmv_stats_add_instance_label(r, DISKS, 2, "lanes", "[1,2]", MMV_ARRAY_TYPE, 0);
	return mmv_stats_start(r);
}

int
main(int argc, char **argv)
{
	void *map = NULL;
	int version, cluster, flags, count = 0;
	char line[256];
	pmAtomValue *counter;

	if (argc != 5) {
		fprintf(stderr, "usage: writer VERSION NAME CLUSTER FLAGS\n");
		return 2;
	}
	version = atoi(argv[1]);
	cluster = atoi(argv[3]);
	flags = atoi(argv[4]);
	switch (version) {
	case 1: map = version1(argv[2], cluster, flags); break;
	case 2: map = version2(argv[2], cluster, flags); break;
	case 3: map = version3(argv[2], cluster, flags); break;
	}
	if (map == NULL) {
		perror("writer: no file");
		return 1;
	}
	/* By the name, not the pointer: both of the library's ways are then in use. */
	mmv_stats_set(map, "type.i32", "", -2147483647 - 1);
	mmv_stats_set(map, "type.u32", "", 4294967295u);
	mmv_stats_set(map, "type.i64", "", -9007199254740992.0);
	mmv_stats_set(map, "type.u64", "", 9007199254740992.0);
	mmv_stats_set(map, "type.float", "", -0.5);
	mmv_stats_set(map, "type.double", "", 1e-3);
	mmv_stats_set_string(map, "type.string", "", "g'day \"world\"");
	mmv_stats_set(map, "type.elapsed", "", 1234567);
	mmv_stats_set(map, "disk.reads", "sda", 11);
	mmv_stats_set(map, "disk.reads", "sdb", 22);
	mmv_stats_set(map, "disk.busy", "nvme0n1 of the first controller", 0.25);
	mmv_stats_set_string(map, "disk.model", "sda", "spinning");
	mmv_stats_set_string(map, "disk.model", "sdb", "a longer text, that a shorter one will be written over");
	mmv_stats_set_string(map, "disk.model", "sdb", "flash");
	if (version > 1)
		mmv_stats_set(map, metrics[COUNTOF(metrics) - 1].name, "", 42);
	counter = mmv_lookup_value_desc(map, "count", "");
	printf("ready\n");
	fflush(stdout);

	while (fgets(line, sizeof(line), stdin) != NULL) {
		mmv_inc(map, counter);
		printf("%d\n", ++count);
		fflush(stdout);
	}
	return 0;
}
