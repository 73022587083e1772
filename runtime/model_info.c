/* model_info.c — questions to a model that need no session. */
#include "runtime/text.h"

#include <string.h>

uint32_t lnt_model_input_count(const lnt_model *model)
{
    return model ? model->n_in : 0;
}

uint32_t lnt_model_output_count(const lnt_model *model)
{
    return model ? model->n_out : 0;
}

static void describe(const lnt_model *m, uint32_t value, lnt_value_info *info)
{
    const lnt_operand *v = &m->value[value];
    *info = (lnt_value_info){.name = lnt_value_name(m, value), .dtype = (lnt_dtype)v->dtype, .rank = v->rank};
    if (lnt_is_text(m, value))
        info->dtype = LNT_STRING;
    for (unsigned d = 0; v->rank <= LNT_MAX_RANK && d < v->rank; d++) {
        info->dims[d] = v->dims[d] < 0 ? -1 : v->dims[d];
        if (lnt_is_symbol(v->dims[d]))
            info->dim_names[d] = m->file.strings + m->file.symbols[lnt_symbol_number(v->dims[d])].name;
    }
}

lnt_status lnt_model_input(const lnt_model *model, uint32_t i, lnt_value_info *info)
{
    if (!model || !info || i >= model->n_in)
        return LNT_E_ARGUMENT;
    describe(model, model->in[i], info);
    for (unsigned d = 0; info->rank <= LNT_MAX_RANK && d < info->rank; d++)
        info->dim_names[d] = model->dim_name[i * LNT_MAX_RANK + d];
    for (uint32_t k = 0; k < model->file.n_states; k++)
        info->is_state |= model->file.states[k].input == i;
    return LNT_OK;
}

lnt_status lnt_model_output(const lnt_model *model, uint32_t i, lnt_value_info *info)
{
    if (!model || !info || i >= model->n_out)
        return LNT_E_ARGUMENT;
    describe(model, model->out[i], info);
    for (uint32_t k = 0; k < model->file.n_states; k++)
        info->is_state |= model->file.states[k].output == i;
    return LNT_OK;
}

static int find(const lnt_model *m, const uint32_t *values, uint32_t n, const char *name)
{
    for (uint32_t i = 0; name && i < n; i++)
        if (strcmp(lnt_value_name(m, values[i]), name) == 0)
            return (int)i;
    return -1;
}

int lnt_model_find_input(const lnt_model *model, const char *name)
{
    return model ? find(model, model->in, model->n_in, name) : -1;
}

int lnt_model_find_output(const lnt_model *model, const char *name)
{
    return model ? find(model, model->out, model->n_out, name) : -1;
}

uint32_t lnt_model_metadata_count(const lnt_model *model)
{
    return model ? model->file.n_metadata : 0;
}

lnt_status lnt_model_metadata(const lnt_model *model, uint32_t i, const char **key, const char **text)
{
    if (!model || !key || !text || i >= model->file.n_metadata)
        return LNT_E_ARGUMENT;
    *key = model->file.strings + model->file.metadata[i].key;
    *text = model->file.strings + model->file.metadata[i].text;
    return LNT_OK;
}

lnt_status lnt_model_attachment(const lnt_model *model, const char *name, const void **data, size_t *bytes)
{
    if (!model || !name || !data || !bytes)
        return LNT_E_ARGUMENT;
    for (uint32_t i = 0; i < model->file.n_attachments; i++) {
        const lnt_rec_attachment *a = &model->file.attachments[i];
        if (strcmp(model->file.strings + a->name, name) == 0) {
            *data = model->file.attached + a->offset;
            *bytes = (size_t)a->bytes;
            return LNT_OK;
        }
    }
    return LNT_E_NOT_FOUND;
}

uint64_t lnt_model_hash(const lnt_model *model)
{
    return model ? ((const lnt_rec_header *)(const void *)model->file.bytes)->root_hash : 0;
}
