/* hysteresis.c — an operator of the host's: acme.Hysteresis, 1 from where its input reaches `high` until it falls
 * below `low`. hysteresis SWITCH.lnt: 0 or 1 for each number of its input. */
#include <linnet.h>
#include <stdio.h>

enum { MOST = 4096 };

static lnt_status refuse(lnt_custom_call *call, lnt_status status, const char *why)
{
    snprintf(call->err->message, sizeof call->err->message, "acme.Hysteresis: %s", why);
    return call->err->code = status;
}

/* y is as x: float[N]. */
static lnt_status hysteresis_shape(lnt_custom_call *call)
{
    if (call->n_in != 1 || call->n_out != 1)
        return refuse(call, LNT_E_ARGUMENT, "takes one input and has one output");
    if (call->in[0].dtype != LNT_FLOAT || call->in[0].rank != 1)
        return refuse(call, LNT_E_TYPE, "takes float[N]");
    call->out[0].dtype = LNT_FLOAT;
    call->out[0].rank = 1;
    call->out[0].dims[0] = call->in[0].dims[0];
    return LNT_OK;
}

static lnt_status hysteresis_run(lnt_custom_call *call)
{
    const float low = lnt_custom_attr_float(call, "low", 0.25f),
                high = lnt_custom_attr_float(call, "high", 0.75f);
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    if (!(low <= high))
        return refuse(call, LNT_E_ARGUMENT, "low is above high");
    float on = 0;
    for (int64_t i = 0; i < call->in[0].dims[0]; i++)
        y[i] = on = x[i] >= high ? 1.0f : x[i] < low ? 0.0f : on;
    return LNT_OK;
}

int main(int argc, char **argv)
{
    static float numbers[MOST];
    const lnt_custom_op op = {
        .domain = "acme", .name = "Hysteresis", .shape = hysteresis_shape, .run = hysteresis_run};
    const lnt_model_options options = {.struct_bytes = sizeof options, .custom = &op, .n_custom = 1};
    lnt_model *model = NULL;
    lnt_session *session = NULL;
    lnt_error err = {0};
    int64_t n = 0;
    if (argc != 2)
        return fprintf(stderr, "usage: hysteresis SWITCH.lnt < numbers\n"), 2;
    while (n < MOST && scanf("%f", &numbers[n]) == 1)
        n++;
    const lnt_tensor in = {LNT_FLOAT, 1, {n}, numbers, (size_t)n * sizeof *numbers};
    lnt_tensor out = {0};
    const lnt_status status = lnt_model_create(argv[1], &options, &model, &err) ||
                              lnt_session_create(model, NULL, &session, &err) ||
                              lnt_set_input(session, 0, &in, &err) || lnt_run(session, &err) ||
                              lnt_get_output(session, 0, &out, &err);
    for (int64_t i = 0; status == LNT_OK && i < n; i++)
        printf("%g ", ((const float *)out.data)[i]);
    puts("");
    lnt_session_destroy(&session);
    lnt_model_destroy(&model);
    return status ? fprintf(stderr, "hysteresis: %s\n", err.message), 1 : 0;
}
