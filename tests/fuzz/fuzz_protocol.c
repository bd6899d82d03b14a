/* Packets from any sender: refused with a reason, or a message that the table describes. */
#include <stdlib.h>

#include "flowsup/protocol.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const unsigned senders[] = {FROM_CLIENT, FROM_WORKER, FROM_SUPERVISOR, FROM_OPERATION,
	    FROM_WORKER_REPLY};
	struct slice packet = {(const char *)data, size};
	struct message m;
	struct err e;
	size_t i;

	for (i = 0; i < sizeof(senders) / sizeof(senders[0]); i++) {
		e = (struct err){0};
		if (message_parse(packet, senders[i], &m, &e) == 0) {
			if (m.type >= MESSAGE_TYPES || m.body == NULL)
				abort();
			message_clear(&m);
		} else if (e.code == ERR_NONE || e.msg[0] == '\0') {
			abort();
		}
	}
	return 0;
}
