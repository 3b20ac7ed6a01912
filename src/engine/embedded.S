/* embedded.S: read-only bytes of the embedded model; empty when the build found no file. ELF and Mach-O. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define SYMBOL(name) JOIN(__USER_LABEL_PREFIX__, name)

#ifdef __APPLE__
    .const
#else
    .section .rodata
#endif
    .balign 64
    .globl SYMBOL(hadal_embedded_begin)
    .globl SYMBOL(hadal_embedded_end)
SYMBOL(hadal_embedded_begin):
#ifdef HADAL_EMBEDDED_FILE
    .incbin HADAL_EMBEDDED_FILE
#endif
SYMBOL(hadal_embedded_end):
    .byte 0

#ifdef __ELF__
    .section .note.GNU-stack, "", %progbits
#endif
