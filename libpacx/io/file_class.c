/* file_class.c: MPI error classes as numbers that mean the same at every site. The vendors number them differently.
 */
#include <errno.h>

#include "file.h"
#include "vendor.h"

/* The order is what is said between sites. */
static const int classes[] = { MPI_SUCCESS, MPI_ERR_OTHER, MPI_ERR_ACCESS, MPI_ERR_AMODE, MPI_ERR_ARG,
	MPI_ERR_BAD_FILE, MPI_ERR_COMM, MPI_ERR_CONVERSION, MPI_ERR_COUNT, MPI_ERR_DUP_DATAREP, MPI_ERR_FILE,
	MPI_ERR_FILE_EXISTS, MPI_ERR_FILE_IN_USE, MPI_ERR_INFO, MPI_ERR_INTERN, MPI_ERR_IO, MPI_ERR_NAME,
	MPI_ERR_NO_MEM, MPI_ERR_NO_SPACE, MPI_ERR_NO_SUCH_FILE, MPI_ERR_NOT_SAME, MPI_ERR_QUOTA,
	MPI_ERR_READ_ONLY, MPI_ERR_TYPE, MPI_ERR_UNSUPPORTED_DATAREP, MPI_ERR_UNSUPPORTED_OPERATION };

int px_class_index(int code)
{
	int class = MPI_SUCCESS;

	if (code == MPI_SUCCESS)
		return 0;
	px_n.Error_class(code, &class);
	for (int i = 1; i < (int)(sizeof classes / sizeof classes[0]); i++)
		if (classes[i] == class)
			return i;
	return 1; /* some other error */
}

int px_class_of(int index)
{
	return index >= 0 && index < (int)(sizeof classes / sizeof classes[0]) ? classes[index]
									       : MPI_ERR_OTHER;
}

int px_class_errno(int err)
{
	switch (err) {
	case 0:
		return MPI_SUCCESS;
	case EACCES:
	case EPERM:
		return MPI_ERR_ACCESS;
	case ENOENT:
	case ENOTDIR:
		return MPI_ERR_NO_SUCH_FILE;
	case EEXIST:
		return MPI_ERR_FILE_EXISTS;
	case EROFS:
		return MPI_ERR_READ_ONLY;
	case ENOSPC:
		return MPI_ERR_NO_SPACE;
	case EDQUOT:
		return MPI_ERR_QUOTA;
	case EISDIR:
	case ENAMETOOLONG:
	case ELOOP:
		return MPI_ERR_BAD_FILE;
	case ENOMEM:
		return MPI_ERR_NO_MEM;
	default:
		return MPI_ERR_IO;
	}
}
