# unseen.awk: which I/O of a relinked program happens inside shared libraries, where no link option reaches it.
#
# Input: for the program, and for every shared library that it loads, a line "object NAME" and then its dynamic symbols as
# readelf prints them. The first object is the program. Output: one sentence, or nothing.
#
# A library counts if the program reaches its I/O: by a symbol of its own, or by one of another library that it reaches.

function known(library, symbols, own, remedy) {
    kinds++
    library_of[kinds] = library
    symbols_of[kinds] = symbols
    own_of[kinds] = own
    remedy_of[kinds] = remedy
}

BEGIN {
    # The first line that matches the name of a library counts.
    # own: a call of this library that the recorder wraps where the program itself makes it.
    known("^libmpi(ch|_cray|_gnu|_intel|_mpifh|_usempi|fort|_cxx)?[-_.0-9a-z]*[.]so", "^P?MPI_File_(open|delete|i?read|i?write|sync)|^p?mpi_file_(open|delete|i?read|i?write|sync)",
          "MPI_File_write")
    known("^libhdf5[a-z_0-9]*_?fortran", "h5[a-z]*_")
    known("^libhdf5[a-z_0-9]*_hl[-._]", "^H5(DO|DS|IM|LD|LT|PT|TB)")
    known("^libhdf5[a-z_0-9]*_cpp", "^_ZN?K?2H5")
    known("^libhdf5[-._]", "^H5([ADFGLR](create|open|read|write)|F(flush|close))", "H5Dwrite")
    known("^libnetcdff", "^nf_|netcdf")
    known("^libnetcdf[-_.0-9a-z]*[.]so", "^nc_", "nc_put_vara")
    known("^libpnetcdf", "^ncmpi_|^nfmpi_|pnetcdf", "ncmpi_put_vara_all")
    known("^libstdc[+][+]|^libc[+][+][.]", "basic_[io]?fstream|basic_filebuf|stdio_filebuf|10filesystem", "", "-static-libstdc++")
    known("^libgfortran", "^_gfortran_st_open", "", "-static-libgfortran")
    known("^lib(FortranRuntime|flang_rt)", "^_FortranAioBeginOpen")
    known("^libifcore", "^for_open", "", "-static-intel")
    known("^libnvf", "^f90io_open")
    known("^libz[.]", "^gz(open|dopen|read|write|put|get|printf)")
    known("^libbz2[.]", "^BZ2_bz(open|dopen|read|write|Read|Write)")
    # Libraries of the system, and those that inspect the machine or talk to a network.
    ignored = "^(linux-|ld-|ld64|libc[.]|libm[.]|libmvec|libpthread|libdl[.]|librt[.]|libgcc_s|libresolv|libnsl|libutil|libanl|" \
              "libgomp|libiomp|libomp|libquadmath|libatomic|libhwloc|libnuma|libudev|libsystemd|libevent|libopen-|libpmi|" \
              "libprrte|libuc[mpst][.]|libfabric|librdmacm|libibverbs|libpsm|libcurl|libssl|libcrypto|libopenblas|libblas|" \
              "liblapack|libmkl|libtinfo|libncurses|libreadline|libcap|libdbus|libgnutls|lib[alt]san|libubsan|libcuda|libnv|" \
              "libimf|libsvml|libintlc|libirng|libensio)"
    opening = "^(__)?(f|fd)?open(at)?(64)?(_2)?$|^creat(64)?$"
    moving = "^p?(read|write)v?2?(64)?$|^f(read|write|gets|puts|printf|scanf)$|^__(p?read|fread|fgets|v?fprintf)(64)?_chk$"
}

$1 == "object" {
    object = $2
    name_of[++objects] = object
    kind_of[object] = 0
    for (kind = 1; kind <= kinds && objects > 1 && !kind_of[object]; kind++)
        if (object ~ library_of[kind])
            kind_of[object] = kind
    next
}

# Number, value, size, type, binding, visibility, section, name. Weak symbols are those of the recorder.
$7 == "UND" && $8 != "" && $5 != "WEAK" {
    symbol = $8
    sub(/@.*/, "", symbol)
    if (symbol !~ /filesystem(7__cxx11)?4path/) # paths are texts
        wants[object] = wants[object] " " symbol
    if (symbol ~ opening)
        opens[object] = 1
    if (symbol ~ moving)
        moves[object] = 1
}

$7 ~ /^[0-9]+$/ && $5 != "LOCAL" && !kind_of[object] && object !~ ignored {
    symbol = $8
    sub(/@.*/, "", symbol)
    if (!(symbol in provider))
        provider[symbol] = object
}

function reach(object, own) {
    if (object in reached)
        return
    reached[object] = 1
    queue[++queued] = object
    unseen = unseen (unseen == "" ? "" : ", ") object (own ? " (except the program's own calls of it)" : "")
}

END {
    queue[++queued] = name_of[1]
    for (at = 1; at <= queued; at++) {
        count = split(wants[queue[at]], symbols, " ")
        for (i = 1; i <= count; i++) {
            for (o = 2; o <= objects; o++) {
                object = name_of[o]
                kind = kind_of[object]
                if (!kind || object in reached || symbols[i] !~ symbols_of[kind])
                    continue
                reach(object, at == 1 && own_of[kind] != "" && index(wrapped, " " own_of[kind] " "))
                if (remedy_of[kind] != "")
                    remedies = remedies (remedies == "" ? "" : ", ") remedy_of[kind]
            }
            object = provider[symbols[i]]
            if (object == "" || object in reached || object == name_of[1])
                continue
            if (opens[object] && moves[object]) {
                reach(object, 0)
            } else {
                reached[object] = 1
                queue[++queued] = object
            }
        }
    }
    if (unseen == "")
        exit
    print "ensio-cc: " name_of[1] " does I/O inside shared libraries, where it is not recorded: " unseen \
        "; start the program with ensio run, or link these libraries statically" (remedies == "" ? "" : " (" remedies ")")
}
