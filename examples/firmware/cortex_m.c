/* The start of a program on a Cortex-M without an operating system; `main` prints through the debugger (semihosting). */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

extern uint32_t stack_top, data_start, data_end, data_source, bss_start, bss_end;
extern int main(void);
extern void initialise_monitor_handles(void);

void reset(void) {
  for (uint32_t *to = &data_start, *from = &data_source; to < &data_end;) *to++ = *from++;
  for (uint32_t *to = &bss_start; to < &bss_end;) *to++ = 0;
  initialise_monitor_handles();
  int code = main();
  fflush(stdout);
  _exit(code);
}

static void fault(void) { _exit(3); }

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {&stack_top, reset, fault, fault};
