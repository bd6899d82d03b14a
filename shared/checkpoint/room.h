/* How much room a file system has, to notice that there is more of it than before. */
#ifndef CHECKPOINT_ROOM_H
#define CHECKPOINT_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct room {
	bool known;
	uint64_t blocks, files;
};

/* Of the file system that fd lies on; not known where it does not tell. */
struct room room_of(int fd);
/* Whether now has more of anything. What is not known never grew. */
bool room_grew(struct room before, struct room now);

#endif
