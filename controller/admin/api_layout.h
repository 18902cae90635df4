/* GET /api/v1/jobs/{job}/layout: its parameters, and the answer in the form that they ask for. */
#ifndef BROOM_ADMIN_API_LAYOUT_H
#define BROOM_ADMIN_API_LAYOUT_H

#include "controller/admin/api.h"

/* out is JSON, or with *ret_is_json false the text that a launcher reads. */
MUST_CHECK enum status api_layout_answer(const struct api_backend *backend,
                                         struct http_request *request, const char *job,
                                         struct text *out, bool *ret_is_json, struct error *reterr);

#endif
