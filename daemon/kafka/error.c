// SPDX-License-Identifier: MIT
#include "error.h"

const char *error_name(int16_t error)
{
	switch (error) {
#define X(name, number, text) case number: return #name;
	KAFKA_ERRORS(X)
#undef X
	}
	return "UNKNOWN";
}

const char *error_text(int16_t error)
{
	switch (error) {
#define X(name, number, text) case number: return text;
	KAFKA_ERRORS(X)
#undef X
	}
	return "unknown error";
}
