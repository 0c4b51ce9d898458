#!/bin/sh
# Proves that object files compiled for a wider instruction set define no weak symbol.
#
#   check_weak_symbols.sh NM FOLDER…      looks at every object file below the folders
#
# An inline function or template instance is a weak symbol: the linker keeps one copy for the whole program, perhaps the one
# from avx512/, and an older CPU dies in code that looks baseline. (DW.ref.__gxx_personality_v0 is a pointer that noexcept
# brings along: data, the same from every file.)
set -eu
nm=$1
shift
objects=0
found=0
for folder in "$@"; do
  if [ ! -d "$folder" ]; then
    echo "check_weak_symbols: $folder is not there: nothing was built, or it moved" >&2
    exit 1
  fi
  for object in $(find "$folder" -name '*.o'); do
    objects=$((objects + 1))
    weak=$("$nm" -C "$object" | grep -E '^[0-9a-f]+ [WVu] ' | grep -v 'DW\.ref\.__gxx_personality_v0' || true)
    if [ -n "$weak" ]; then
      found=1
      echo "$object defines weak symbols:"
      echo "$weak" | sed 's/^[0-9a-f]* /  /'
    fi
  done
done
if [ "$objects" -eq 0 ]; then
  echo "check_weak_symbols: no object file below $*" >&2
  exit 1
fi
[ "$found" -eq 0 ] && echo "$objects object files, no weak symbol"
exit "$found"
