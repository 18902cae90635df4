file(GLOB accuracy_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/accuracy_*.c)
add_executable(bench_detect_accuracy ${accuracy_sources})
target_link_libraries(bench_detect_accuracy PRIVATE broom_rehearse)
