#!/bin/bash
# build.sh DIR: builds the packages (deb and rpm) and the archives, for amd64 and arm64, with their checksums, into DIR. The
# same commit gives the same bytes. ARCHS and FORMATS (deb, rpm, tar) select some of them, PACKAGE_VERSION gives another version.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
out=$(readlink -f "$1")
go=${GO:-go}
nfpm=${NFPM:-$go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4}

PACKAGE_VERSION=${PACKAGE_VERSION:-$(packaging/version.sh)}
version=$(git describe --tags --always --dirty)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
MAINTAINER=${MAINTAINER:-The pmdammv authors <pmdammv@example.org>}
export PACKAGE_VERSION SOURCE_DATE_EPOCH MAINTAINER
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$out"/pmdammv[_-]* "$out/SHA256SUMS"

# settle DIR: one time for everything.
settle() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

for ARCH in ${ARCHS:-amd64 arm64}; do
	export ARCH BINARY=$work/$ARCH/pmdammv
	CGO_ENABLED=0 GOOS=linux GOARCH=$ARCH $go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$BINARY" ./cmd/pmdammv

	for format in ${FORMATS:-deb rpm tar}; do
		[ "$format" != tar ] || continue
		export STAGE=$work/$ARCH/$format
		export DESTDIR=$STAGE PREFIX=/usr PMDAS=/var/lib/pcp/pmdas CONFIG=/etc/pcp UNITS=/usr/lib/systemd/system
		case $format in
		deb) export PMDASADM=/usr/lib/pcp/pmdas ;;
		rpm) export PMDASADM=/usr/libexec/pcp/pmdas ;;
		esac
		packaging/install.sh
		doc=$STAGE/usr/share/doc/pmdammv
		mkdir -p "$doc"
		cp docs/INSTALL.md "$doc/setting-up.md"
		cp docs/TOOLS.md CHANGELOG.md "$doc"
		{
			printf 'pmdammv (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n' "$PACKAGE_VERSION"
			printf ' -- %s  %s\n' "$MAINTAINER" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
		} >"$doc/changelog"
		gzip -9n "$STAGE"/usr/share/man/man?/* "$doc"/CHANGELOG.md "$doc"/changelog
		# deb has no such field.
		sed "$([ "$format" = rpm ] || echo '/^license:/d')" packaging/nfpm.yaml >"$work/nfpm.yaml"
		settle "$STAGE"
		$nfpm package -f "$work/nfpm.yaml" -p "$format" -t "$out/"
	done

	case " ${FORMATS:-tar} " in *" tar "*) ;; *) continue ;; esac
	tree=$work/pmdammv-$PACKAGE_VERSION-linux-$ARCH
	mkdir "$tree"
	cp -r configs systemd docs packaging/install.sh LICENSE README.md CHANGELOG.md "$BINARY" "$tree"
	settle "$tree"
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "${tree##*/}" |
		gzip -9n >"$out/${tree##*/}.tar.gz"
done
(cd "$out" && sha256sum -- pmdammv[_-]* >SHA256SUMS)
ls -l "$out"
