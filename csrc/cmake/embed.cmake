# Writes the source file that holds a code object: cmake -DTARGET= -DCODE_OBJECT= -DOUTPUT= -P this.
#
# The checksum makes the text change with the contents: compilers that cache by the text of their
# inputs (zig c++) do not see what .incbin reads.
file(SHA256 "${CODE_OBJECT}" checksum)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[// Code object @TARGET@, SHA-256 @checksum@.
__asm__(
    ".pushsection .rodata\n"
    ".balign 4096\n"
    ".globl jax_fa_code_object_@TARGET@\n"
    ".hidden jax_fa_code_object_@TARGET@\n"
    "jax_fa_code_object_@TARGET@:\n"
    ".incbin \"@CODE_OBJECT@\"\n"
    ".globl jax_fa_code_object_@TARGET@_end\n"
    ".hidden jax_fa_code_object_@TARGET@_end\n"
    "jax_fa_code_object_@TARGET@_end:\n"
    ".byte 0\n"
    ".popsection\n");
]] @ONLY)
