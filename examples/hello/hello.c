/* hello.c — what digit is it? hello < image.raw */
#include <linnet.h>
#include <stdio.h>

int main(void)
{
    static float image[28 * 28];
    lnt_tensor in = {LNT_FLOAT, 4, {1, 1, 28, 28}, image, sizeof image}, out;
    lnt_model *model = NULL;
    lnt_session *session = NULL;
    lnt_error err = {0};
    if (fread(image, sizeof image, 1, stdin) != 1 || lnt_model_create("digits.lnt", NULL, &model, &err) ||
        lnt_session_create(model, NULL, &session, &err) || lnt_set_input(session, 0, &in, &err) ||
        lnt_run(session, &err) || lnt_get_output(session, 0, &out, &err))
        return fprintf(stderr, "hello: %s\n", err.message), 1;
    for (size_t i = 0; i < out.bytes / sizeof(float); i++)
        printf("%g\n", ((const float *)out.data)[i]);
    lnt_session_destroy(&session);
    lnt_model_destroy(&model);
}
