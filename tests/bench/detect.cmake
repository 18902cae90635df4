add_executable(bench_detect ${CMAKE_CURRENT_LIST_DIR}/bench_detect.c)
target_link_libraries(bench_detect PRIVATE broom_detectors)
