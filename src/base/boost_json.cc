// Boost.JSON, compiled here once instead of linked: Debian's headers are all that building needs.
#include <boost/json/src.hpp>
