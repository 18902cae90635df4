/* GET /: one HTML document without anything from elsewhere, built into the program from page.html.
 * It reads /api/v1 and steers nothing. */
#ifndef BROOM_ADMIN_PAGE_H
#define BROOM_ADMIN_PAGE_H

#include "controller/io/http_server.h"

void page_reply(struct http_request *request);
struct view page_html(void);                    /* static */
const char *page_content_security_policy(void); /* static; its hashes are those of the document */

#endif
