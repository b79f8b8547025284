"""From LLVM code to running programs: compiling, keeping on disk, threads, the table of calls, access to arrays."""
