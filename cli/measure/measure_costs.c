/* measure_costs.c — measuring a machine for its cost table. */
#include "cli/measure/measure_costs.h"

#include "cli/data/model.h"
#include "ops/check/check.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double turn_seconds = 0.1;

/* ---- what the system says ---- */

bool lnt_cpu_field(const char *key, char *text, size_t bytes)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[4096];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        found = value && strncmp(line, key, strlen(key)) == 0;
        if (!found)
            continue;
        value += value[1] == ' ' ? 2 : 1;
        snprintf(text, bytes, "%.*s", (int)strcspn(value, "\n"), value);
    }
    if (f)
        fclose(f);
    return found;
}

void lnt_cpu_name(char *text, size_t bytes)
{
    if (!lnt_cpu_field("model name", text, bytes) && !lnt_cpu_field("Model", text, bytes) &&
        !lnt_cpu_field("Hardware", text, bytes))
        snprintf(text, bytes, "unknown");
}

/* The first line of a file; false if it cannot be read or is empty. */
static bool read_line(const char *path, char *text, size_t bytes)
{
    FILE *f = fopen(path, "r");
    const bool good = f && fgets(text, (int)bytes, f) && *text != '\n';
    if (f)
        fclose(f);
    if (good)
        text[strcspn(text, "\n")] = '\0';
    return good;
}

static double read_number(const char *path)
{
    char text[32];
    return read_line(path, text, sizeof text) ? strtod(text, NULL) : NAN;
}

/* "32K" as KiB; 0 if there is no such cache of data. */
static double cache_kib(unsigned index)
{
    char path[96], text[32];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/type", index);
    if (!read_line(path, text, sizeof text) || strcmp(text, "Instruction") == 0)
        return 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/size", index);
    if (!read_line(path, text, sizeof text))
        return 0;
    char *unit;
    const double n = strtod(text, &unit);
    return *unit == 'M' ? n * 1024 : n;
}

/* The clock after work has brought it up: what the system says, else the first "cpu MHz" of /proc/cpuinfo. */
static double clock_mhz(void)
{
    const double khz = read_number("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
    char text[LNT_COSTS_TEXT];
    if (!isnan(khz))
        return khz / 1000;
    return lnt_cpu_field("cpu MHz", text, sizeof text) ? strtod(text, NULL) : NAN;
}

static void describe(lnt_costs *c)
{
    char text[LNT_COSTS_TEXT];
    snprintf(c->origin, sizeof c->origin, "measured");
    lnt_cpu_name(c->cpu, sizeof c->cpu);
    c->clock_mhz = clock_mhz();
    if (!read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", c->governor, sizeof c->governor))
        snprintf(c->governor, sizeof c->governor, "unknown");
    c->temperature_c = read_number("/sys/class/thermal/thermal_zone0/temp") / 1000;
    /* A Pi's firmware: 0 is neither heat nor a weak supply. On a PC: how often it was too hot. */
    if (read_line("/sys/devices/platform/soc/soc:firmware/get_throttled", text, sizeof text))
        snprintf(c->throttled, sizeof c->throttled, "0x%.16s", text);
    else if (read_line("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", text,
                       sizeof text))
        snprintf(c->throttled, sizeof c->throttled, "%.16s times since boot", text);
    else
        snprintf(c->throttled, sizeof c->throttled, "unknown");
}

/* ---- memory ---- */

static void add_memory(lnt_costs *c, double kib, double bytes)
{
    lnt_cost_memory *m = &c->memory[c->n_memories++];
    m->kib = kib;
    m->gbs = lnt_check_read_rate(lnt_cpu_level(), (size_t)bytes, turn_seconds);
    m->gbs = m->gbs > 0 ? m->gbs : 1e-3; /* too little memory to measure it */
}

/* Each cache is read by three quarters, main memory by four times the largest cache, both within bounds:
 * hosts of virtual machines name hundreds of megabytes. */
static void measure_memory(lnt_costs *c)
{
    enum { CACHES = 5, LEAST_MB = 32, MOST_MB = 128 };
    double largest = 0;
    for (unsigned i = 0; i < CACHES; i++) {
        const double kib = cache_kib(i);
        if (kib <= largest)
            continue;
        largest = kib;
        add_memory(c, kib, fmin(kib / 1024 * 0.75, MOST_MB / 4) * 1024 * 1024);
    }
    const double mb = fmin(fmax(4 * largest / 1024, LEAST_MB), MOST_MB);
    add_memory(c, 0, mb * 1024 * 1024);
}

/* ---- threads ---- */

enum { HANDOVERS = 2000, WAKES = 60 };

typedef struct partner {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Atomic(int) asked, done; /* rounds */
    bool sleeps;
} partner;

static void *partner_main(void *arg)
{
    partner *p = arg;
    for (int round = 1;; round++) {
        if (p->sleeps) {
            pthread_mutex_lock(&p->lock);
            while (atomic_load(&p->asked) < round)
                pthread_cond_wait(&p->wake, &p->lock);
            pthread_mutex_unlock(&p->lock);
        } else {
            while (atomic_load_explicit(&p->asked, memory_order_acquire) < round)
                ;
        }
        atomic_store(&p->done, round);
        if (round == (p->sleeps ? WAKES : HANDOVERS))
            return NULL;
    }
}

/* Microseconds from asking a second thread until it has answered, the fastest tenth left out; it sleeps
 * between, or waits awake. */
static double answer_us(bool sleeps)
{
    static double took[HANDOVERS];
    const int rounds = sleeps ? WAKES : HANDOVERS;
    partner p = {.sleeps = sleeps};
    pthread_t thread;
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.wake, NULL);
    if (pthread_create(&thread, NULL, partner_main, &p) != 0)
        return 0;
    for (int i = 0; i < rounds; i++) {
        usleep(sleeps ? 2000 : 0);
        const double begin = lnt_now();
        pthread_mutex_lock(&p.lock);
        atomic_store(&p.asked, i + 1);
        pthread_cond_signal(&p.wake);
        pthread_mutex_unlock(&p.lock);
        while (atomic_load(&p.done) <= i)
            ;
        took[i] = (lnt_now() - begin) * 1e6;
    }
    pthread_join(thread, NULL);
    pthread_mutex_destroy(&p.lock);
    pthread_cond_destroy(&p.wake);
    lnt_sort_figures(took, (size_t)rounds);
    return took[rounds / 10];
}

/* ---- the table ---- */

void lnt_costs_measure(lnt_costs *c)
{
    memset(c, 0, sizeof *c);
    const lnt_level best = lnt_cpu_level();
    for (unsigned i = 0; i <= best; i++) {
        if (!lnt_cpu_has((lnt_level)i))
            continue;
        lnt_cost_level *l = &c->level[c->n_levels++];
        snprintf(l->name, sizeof l->name, "%s", lnt_level_text((lnt_level)i));
        l->float_gflops = lnt_check_float_rate((lnt_level)i, turn_seconds);
        l->byte_gops = lnt_check_byte_rate((lnt_level)i, turn_seconds);
    }
    c->quantize_ns = 1 / lnt_check_quantize_rate(best, turn_seconds);
    measure_memory(c);
    if (lnt_default_threads() > 1) {
        c->wake_us = answer_us(true);
        c->handover_us = answer_us(false);
    }
    describe(c);
    c->grain_percent = lnt_costs_grain_percent(c);
}

static void print_number(FILE *out, const char *key, double x)
{
    if (isnan(x))
        fprintf(out, "%-16sunknown\n", key);
    else
        fprintf(out, "%-16s%.4g\n", key, x);
}

void lnt_costs_print(const lnt_costs *c, FILE *out)
{
    fprintf(out, "%-16s%s\n%-16s%s\n", "origin", c->origin, "cpu", c->cpu);
    print_number(out, "clock_mhz", c->clock_mhz);
    fprintf(out, "%-16s%s\n", "governor", c->governor);
    print_number(out, "temperature_c", c->temperature_c);
    fprintf(out, "%-16s%s\n", "throttled", c->throttled);
    for (unsigned i = 0; i < c->n_levels; i++)
        fprintf(out, "%-16s%s %.4g %.4g\n", "level", c->level[i].name, c->level[i].float_gflops,
                c->level[i].byte_gops);
    for (unsigned i = 0; i < c->n_memories; i++)
        fprintf(out, "%-16s%.4g %.4g\n", "memory", c->memory[i].kib, c->memory[i].gbs);
    print_number(out, "quantize_ns", c->quantize_ns);
    print_number(out, "wake_us", c->wake_us);
    print_number(out, "handover_us", c->handover_us);
    print_number(out, "grain_percent", c->grain_percent);
}
