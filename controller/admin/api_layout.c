/* Launch help over HTTP. */
#include "controller/admin/api_layout.h"

#include <string.h>

enum status api_layout_answer(const struct api_backend *backend, struct http_request *request,
                              const char *job, struct text *out, bool *ret_is_json,
                              struct error *reterr)
{
    AUTO(layout_free) struct layout *layout = NULL;
    enum layout_form form = LAYOUT_JSON;
    const char *format = http_request_query(request, "format");
    const char *by_counting = http_request_query(request, "by_counting");
    const struct api_layout question = {.job = job,
                                        .nodes = http_request_query(request, "nodes"),
                                        .incident_ref = http_request_query(request, "incident"),
                                        .by_counting = by_counting != NULL &&
                                                       strcmp(by_counting, "0") != 0};
    if (format != NULL && !layout_form_parse(format, &form))
        return error_set(reterr, ERR_INVALID,
                         "format= takes json, hostfile, rankfile, slurm or nccl-topology");
    if (backend->layout == NULL)
        return error_set(reterr, ERR_NOT_FOUND, "this broomd plans no layouts");
    TRY(backend->layout(backend->self, &question, &layout, reterr));
    *ret_is_json = form == LAYOUT_JSON;
    return layout_write(layout, form, out, reterr);
}
