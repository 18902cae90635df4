#ifndef SW
#define SW
struct sample_window { struct text t; };
static inline struct sample_window sample_window_open(const char *m, int r){(void)r;struct sample_window w={0};text_addf(&w.t,"{\"metric\":\"%s\",\"points\":[",m);return w;}
static inline void sample_window_add(struct sample_window*w,int64_t t,int s,int r,double v){text_addf(&w->t,"%s[%lld,%d,%d,%.9g]",w->t.bytes[w->t.length-1]=='['?"":",",(long long)t,s,r,v);}
static inline void sample_window_close(struct sample_window*w,struct json_writer*x){text_add(&w->t,"]}");json_add_raw(x,(struct view){w->t.bytes,w->t.length});text_done(&w->t);}
#endif
