// Package mmvimage builds images of MMV files (mmv(5), versions 1 to 3) field by field, well-formed or not, for tests.
//
//	img := mmvimage.New(1).Cluster(5).
//		InDom(1, "", "", mmvimage.Inst{ID: 0, Name: "x"}, mmvimage.Inst{ID: 1, Name: "y"}).
//		Metric(mmvimage.Metric{Name: "m", Item: 1, Type: mmvimage.I64, Sem: mmvimage.Instant, InDom: 1,
//			Values: []mmvimage.Value{mmvimage.Int(10), mmvimage.Int(11)}})
//	err := mmvimage.Write(path, img.Build())
//
// Nothing is checked: any item, type, serial or name goes into the image as it is. What cannot be said with the
// builder is patched in the finished bytes, at offsets that [Image.Layout] gives:
//
//	b := img.Build()
//	mmvimage.PutU32(b, img.Layout().TOC(2)+mmvimage.TOCCount, 0xffffffff)
//
// The sections lie in the order of their type numbers: header, TOC, indoms, instances, metrics, values, strings, labels.
// A section without entries is left out, apart from metrics and values, which a reader wants in every file. Integers are
// in the byte order of the host, as every writer's are, unless [Image.ByteOrder] says otherwise.
package mmvimage
