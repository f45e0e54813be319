# Writes a C++ file that holds the text of kernel files.
# cmake -DOUTPUT=file.cpp "-DKERNELS=a.cl;b.clh" -DROOT=folder that their names are relative to -P embed_kernels.cmake
set(text "#include \"lib/cl/kernel_source.h\"\n\nnamespace clnet::ocl {\n\nnamespace {\n\n")
string(APPEND text "// The last one only keeps the array from being empty.\nconstexpr EmbeddedFile files[] = {\n")
foreach(kernel IN LISTS KERNELS)
  file(RELATIVE_PATH name ${ROOT} ${kernel})
  file(READ ${kernel} content)
  string(APPEND text "    {\"${name}\", R\"clnet_kernel(${content})clnet_kernel\"},\n")
endforeach()
list(LENGTH KERNELS count)
string(APPEND text "    {}};\n\n}  // namespace\n\nstd::span<const EmbeddedFile> embedded_files() { return {files, ${count}}; }\n\n")
string(APPEND text "}  // namespace clnet::ocl\n")
file(WRITE ${OUTPUT} "${text}")
