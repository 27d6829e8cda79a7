/* samples.c: samples of the kernel's counters as metrics. Each counter is a metric class. An instance of a class has
 * the samples of a rank, and the rank's group of locations as its scope; its number says which rank (stream.h). One
 * location holds all of them. They are kept until the end of the input, because there are few. */
#include "writer.h"

#include <string.h>

#define SAMPLES_LOCATION (1ULL << 48) /* behind those of threads: group << 16 | thread */

static const char **counters; /* name, unit, meaning, mode */
static uint32_t counter_count;
static struct ensio_otf2_sample *samples;
static uint32_t sample_count;
static uint64_t event_count;

void ensio_take_counters(const char **texts, uint32_t count)
{
    counters = texts;
    counter_count = count;
}

void ensio_receive_samples(const struct ensio_message *message)
{
    if (message->bytes != (uint64_t)message->count * sizeof *samples)
        ensio_fail("a block of samples does not have the announced length");
    samples = ensio_more(NULL, message->bytes ? message->bytes : 1);
    ensio_receive(samples, message->bytes);
    sample_count = message->count;
    for (uint32_t i = 0; i < sample_count; i++) {
        uint32_t number = samples[i].metric;
        if (number < counter_count || (number - counter_count) / counter_count >= ensio_plan.tasks)
            ensio_fail("a sample has an undefined counter or rank");
    }
}

void ensio_write_samples(void)
{
    static const OTF2_Type type = OTF2_TYPE_INT64;
    if (!sample_count)
        return;
    OTF2_EvtWriter *writer = OTF2_Archive_GetEvtWriter(ensio_plan.archive, SAMPLES_LOCATION);
    if (!writer)
        ensio_fail("the file of the samples cannot be made");
    for (uint32_t i = 0; i < sample_count; i++) {
        uint64_t time = ensio_plan.settings.origin_unix_ns + (uint64_t)samples[i].time;
        OTF2_MetricValue value = {.signed_int = samples[i].value};
        ensio_check(OTF2_EvtWriter_Metric(writer, NULL, time, samples[i].metric, 1, &type, &value), "write a sample");
        if (time < ensio_first_time)
            ensio_first_time = time;
        if (time > ensio_last_time)
            ensio_last_time = time;
    }
    ensio_check(OTF2_EvtWriter_GetNumberOfEvents(writer, &event_count), "count samples");
    ensio_check(OTF2_Archive_CloseEvtWriter(ensio_plan.archive, writer), "write the samples");
    /* No definition belongs to this location alone, but readers expect the file. */
    OTF2_DefWriter *definitions = OTF2_Archive_GetDefWriter(ensio_plan.archive, SAMPLES_LOCATION);
    if (!definitions)
        ensio_fail("the file of the samples cannot be made");
    ensio_check(OTF2_Archive_CloseDefWriter(ensio_plan.archive, definitions), "write the samples");
}

/* All of them, because readers expect numbers without gaps. */
static void define_instances(OTF2_GlobalDefWriter *writer)
{
    for (uint32_t rank = 0; rank < ensio_plan.tasks; rank++)
        for (uint32_t i = 0; i < counter_count; i++)
            ensio_check(OTF2_GlobalDefWriter_WriteMetricInstance(writer, counter_count * (1 + rank) + i, i,
                                                                 SAMPLES_LOCATION, OTF2_SCOPE_LOCATION_GROUP,
                                                                 rank / ensio_plan.settings.ranks_per_location),
                        "write a metric");
}

/* After all groups of locations. */
void ensio_define_samples(OTF2_GlobalDefWriter *writer)
{
    if (!sample_count)
        return;
    ensio_check(OTF2_GlobalDefWriter_WriteLocation(writer, SAMPLES_LOCATION, ensio_text("Counters of the kernel"),
                                                   OTF2_LOCATION_TYPE_METRIC, event_count, 0),
                "write a location");
    for (uint32_t i = 0; i < counter_count; i++) {
        const char **of = counters + 4 * (size_t)i;
        OTF2_MetricMode mode = strcmp(of[3], "sum") == 0 ? OTF2_METRIC_ACCUMULATED_START : OTF2_METRIC_ABSOLUTE_POINT;
        uint32_t name = ensio_text(of[0]), unit = ensio_text(of[1]), meaning = ensio_text(of[2]);
        ensio_check(OTF2_GlobalDefWriter_WriteMetricMember(writer, i, name, meaning, OTF2_METRIC_TYPE_OTHER, mode,
                                                           OTF2_TYPE_INT64, OTF2_BASE_DECIMAL, 0, unit),
                    "write a metric");
        ensio_check(OTF2_GlobalDefWriter_WriteMetricClass(writer, i, 1, &i, OTF2_METRIC_ASYNCHRONOUS,
                                                          OTF2_RECORDER_KIND_ABSTRACT),
                    "write a metric");
    }
    define_instances(writer);
}
