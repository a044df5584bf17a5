/* Counts what a process does to the files below one folder, and makes one of these events its last, or its first that
   fails. Preloaded into the process that `kills.py` forks its writers from; `arm` is called in each of them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { OFF, COUNT, KILL, TORN, INTERRUPT, FULL, READ_ONLY };

static char folder[4096];
static char inside[1 << 16]; /* by file descriptor */
static int mode = OFF;
static long at, seen;

void arm(const char *path, int how, long event) {
    snprintf(folder, sizeof folder, "%s", path);
    mode = how;
    at = event;
    seen = 0;
}

long events(void) { return seen; }

static int is_inside(const char *path) {
    return mode != OFF && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_known(int fd) { return mode != OFF && fd >= 0 && fd < (int)sizeof inside && inside[fd]; }

/* One event; the error that it ends with, or 0. */
static int event(int takes_space) {
    seen++;
    if (seen == at && mode == KILL) kill(getpid(), SIGKILL);
    if (seen == at && mode == INTERRUPT) kill(getpid(), SIGINT);
    if (seen >= at && mode == FULL && takes_space) return ENOSPC;
    if (seen >= at && mode == READ_ONLY) return EROFS;
    return 0;
}

static int failed(int error) {
    errno = error;
    return -1;
}

#define REAL(name) (real ? real : (real = dlsym(RTLD_NEXT, name)))
#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        static int (*real)(const char *, int, ...);                                                                    \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t rights = va_arg(rest, mode_t);                                                                          \
        va_end(rest);                                                                                                  \
        int error = is_inside(path) && WRITES(flags) ? event(flags & O_CREAT) : 0;                                     \
        if (error) return failed(error);                                                                               \
        int fd = ((int (*)(const char *, int, ...))REAL(#name))(path, flags, rights);                                  \
        if (fd >= 0 && fd < (int)sizeof inside) inside[fd] = is_inside(path) && WRITES(flags);                         \
        return fd;                                                                                                     \
    }
OPEN(open)
OPEN(open64)

#define WRITE(name, more, arguments)                                                                                   \
    ssize_t name(int fd, const void *data, size_t size more) {                                                         \
        static ssize_t (*real)();                                                                                      \
        REAL(#name);                                                                                                   \
        int error = is_known(fd) ? event(1) : 0;                                                                       \
        if (error) return failed(error);                                                                               \
        if (is_known(fd) && mode == TORN && seen == at) {                                                              \
            size /= 2;                                                                                                 \
            real(fd, data, size arguments);                                                                            \
            kill(getpid(), SIGKILL);                                                                                   \
        }                                                                                                              \
        return real(fd, data, size arguments);                                                                         \
    }
#define COMMA ,
WRITE(write, , )
WRITE(pwrite, COMMA off_t place, COMMA place)
WRITE(pwrite64, COMMA off_t place, COMMA place)

#define ON_FILE(name, parameters, arguments, takes_space)                                                              \
    int name(int fd parameters) {                                                                                      \
        static int (*real)();                                                                                          \
        int error = is_known(fd) ? event(takes_space) : 0;                                                             \
        return error ? failed(error) : ((int (*)())REAL(#name))(fd arguments);                                         \
    }
ON_FILE(fsync, , , 0)
ON_FILE(fdatasync, , , 0)
ON_FILE(ftruncate, COMMA off_t size, COMMA size, 0)
ON_FILE(ftruncate64, COMMA off_t size, COMMA size, 0)
ON_FILE(fallocate64, COMMA int how COMMA off_t place COMMA off_t size, COMMA how COMMA place COMMA size, 1)

int posix_fallocate64(int fd, off_t place, off_t size) { /* gives its error back */
    static int (*real)(int, off_t, off_t);
    int error = is_known(fd) ? event(1) : 0;
    return error ? error : REAL("posix_fallocate64")(fd, place, size);
}

#define ON_PATH(name, parameters, arguments, takes_space)                                                              \
    int name(const char *path parameters) {                                                                            \
        static int (*real)();                                                                                          \
        int error = is_inside(path) ? event(takes_space) : 0;                                                          \
        return error ? failed(error) : ((int (*)())REAL(#name))(path arguments);                                       \
    }
ON_PATH(unlink, , , 0)
ON_PATH(rmdir, , , 0)
ON_PATH(mkdir, COMMA mode_t rights, COMMA rights, 1)
ON_PATH(rename, COMMA const char *to, COMMA to, 0)
ON_PATH(link, COMMA const char *to, COMMA to, 0)
ON_PATH(truncate64, COMMA off_t size, COMMA size, 0)
